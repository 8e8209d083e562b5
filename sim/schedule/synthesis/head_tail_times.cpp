// For the lower bounds of `synthesised`: the least time before (head) and after (tail) each op, and when one machine
// with such jobs ends at the earliest.

#include "sim/schedule/synthesis/bound_model.hpp"

#include <algorithm>
#include <queue>

namespace stagecraft::synthesis {
namespace {

void raise(double& best, double value) { best = std::max(best, value); }

}  // namespace

double one_machine(std::vector<Job> jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.head < b.head; });
  const auto shorter = [](const Job& a, const Job& b) { return a.tail < b.tail; };
  std::priority_queue<Job, std::vector<Job>, decltype(shorter)> there(shorter);
  double now = 0, end = 0;
  for (std::size_t next = 0; next < jobs.size() || !there.empty();) {
    if (there.empty()) now = std::max(now, jobs[next].head);
    while (next < jobs.size() && jobs[next].head <= now) there.push(jobs[next++]);
    Job job = there.top();
    there.pop();
    const double end_of_job = now + job.time;
    if (next < jobs.size() && jobs[next].head < end_of_job) {
      job.time = end_of_job - jobs[next].head;
      now = jobs[next].head;
      there.push(job);
    } else {
      now = end_of_job;
      end = std::max(end, now + job.tail);
    }
  }
  return end;
}

HeadTailTimes::HeadTailTimes(const LowerBoundModel& model, int rank)
    : model_(model), p_(model.problem), rank_(rank), head_(p_.rank_of.size()), tail_(p_.rank_of.size()) {
  for (int s = 0; s < static_cast<int>(head_.size()); ++s) {
    after_.push_back(after_gradients(s));
    for (auto* list : {&tail_[s].forward, &tail_[s].input, &tail_[s].weight}) list->assign(p_.micros[s], kNowhere);
  }
  for (const int s : p_.order) {
    bool reached = counts(s);
    for (const StageLink& l : model_.before[s]) reached |= !head_[l.stage].forward.empty();
    if (!reached) continue;
    for (auto* list : {&head_[s].forward, &head_[s].input, &head_[s].weight}) list->assign(p_.micros[s], 0);
  }
  for (int k = 0; k < model_.most_micros; ++k) {
    for (const int s : p_.order) forward_head(s, k);
    for (auto it = p_.order.rbegin(); it != p_.order.rend(); ++it) gradient_head(*it, k);
  }
  for (int n = 0; n < model_.most_micros; ++n) {
    for (const int s : p_.order) gradient_tail(s, n);
    for (auto it = p_.order.rbegin(); it != p_.order.rend(); ++it) forward_tail(*it, n);
  }
}

double HeadTailTimes::round_trip() const {
  double longest = 0;
  for (std::size_t s = 0; s < head_.size(); ++s)
    if (!head_[s].forward.empty())
      raise(longest, head_[s].forward.front() + model_.times[s].forward + tail_[s].forward.front());
  return longest;
}

void HeadTailTimes::add_jobs(int s, std::vector<Job>& jobs) const {
  const StageTimes& t = model_.times[s];
  const Times &head = head_[s], &tail = tail_[s];
  const double input = model_.input(s), weight = model_.weight[s];
  const std::size_t micros = head.forward.size();
  for (std::size_t k = 0; k < micros; ++k) {
    const std::size_t n = micros - 1 - k;
    jobs.push_back({head.forward[k], t.forward, tail.forward[n]});
    if (t.prelude > 0) jobs.push_back({head.forward[k] + t.forward, t.prelude, input + tail.input[n]});
    jobs.push_back({head.input[k], input, tail.input[n]});
    if (weight > 0) jobs.push_back({head.weight[k] - weight, weight, tail.weight[n]});
  }
  if (t.update > 0 && counts(s) && micros > 0) jobs.push_back({head.weight.back() + exchange_of(s), t.update, 0});
}

bool HeadTailTimes::counts(int s) const { return rank_ == kAll || p_.rank_of[s] == rank_; }

/// Whether both stages have equally many micro-batches, so that the k-th of one waits for k of the other.
bool HeadTailTimes::same_micro_batches(int a, int b) const { return p_.micros[a] == p_.micros[b]; }

bool HeadTailTimes::takes_part(int s, const TiedSum& e) const {
  return std::find(e.stages.begin(), e.stages.end(), s) != e.stages.end();
}

double HeadTailTimes::exchange_of(int s) const {
  double longest = 0;
  for (const TiedSum& e : p_.exchanges.list)
    if (takes_part(s, e)) raise(longest, e.min_time);
  return longest;
}

/// The least time after the last gradient of a stage: when its weights are tied, the exchange and an update.
double HeadTailTimes::after_gradients(int s) const {
  double longest = counts(s) ? 0 : kNowhere;
  for (const TiedSum& e : p_.exchanges.list) {
    if (!takes_part(s, e)) continue;
    for (const int holder : e.stages)
      if (counts(holder)) raise(longest, e.min_time + model_.times[holder].update);
  }
  return longest;
}

/// The k-th F comes after the one before it, after as many on every stage on the way (the k-th of them ends no earlier
/// than k have run), and after the steps that have to free its memory.
void HeadTailTimes::forward_head(int s, int k) {
  Times& head = head_[s];
  if (k >= std::ssize(head.forward)) return;
  double& start = head.forward[k];
  if (k > 0) raise(start, head.forward[k - 1] + model_.times[s].forward);
  for (const StageLink& l : model_.before[s]) {
    const auto& other = head_[l.stage].forward;
    if (!other.empty() && (k == 0 || same_micro_batches(s, l.stage)))
      raise(start, other[k] + model_.times[l.stage].forward + l.time);
  }
  for (const CapacityConstraint& c : model_.constraints[s])
    if (k >= c.limit && !head_[c.stage].forward.empty()) raise(start, end_of(c.stage, c.kind, k - c.limit));
}

double HeadTailTimes::end_of(int s, Kind kind, int k) const {
  const Times& head = head_[s];
  if (kind == kForward) return head.forward[k] + model_.times[s].forward;
  return kind == kInputGradient ? head.input[k] + model_.input(s) : head.weight[k];
}

/// The heads of I and W also come after k+1 F on the same rank.
void HeadTailTimes::gradient_head(int s, int k) {
  Times& head = head_[s];
  if (k >= std::ssize(head.forward)) return;
  const StageTimes& t = model_.times[s];
  const double input = model_.input(s), weight = model_.weight[s], there = t.forward + t.prelude;
  double& start = head.input[k];
  start = std::max(head.forward[k] + there, head.forward.front() + (k + 1) * there + k * input);
  for (const StageLink& l : model_.after[s]) {
    const auto& other = head_[l.stage].input;
    if (k == 0 || same_micro_batches(s, l.stage)) raise(start, other[k] + model_.input(l.stage) + l.time);
  }
  if (k > 0) raise(start, head.input[k - 1] + input);
  double& end = head.weight[k];
  end = std::max(start + input + weight, head.forward.front() + (k + 1) * (there + input + weight));
  if (k > 0) raise(end, head.weight[k - 1] + weight);
}

double HeadTailTimes::constrained_tail(int s, Kind kind, int n) const {
  double longest = kNowhere;
  for (const CapacityConstraint& c : model_.constrains[s])
    if (c.kind == kind && n >= c.limit)
      raise(longest, model_.times[c.stage].forward + tail_[c.stage].forward[n - c.limit]);
  return longest;
}

/// The tail of W with n of them after it: W comes before the F that need the memory it frees.
void HeadTailTimes::gradient_tail(int s, int n) {
  Times& tail = tail_[s];
  if (n >= std::ssize(tail.forward)) return;
  const double input = model_.input(s), weight = model_.weight[s];
  double& weight_tail = tail.weight[n];
  weight_tail = n == 0 ? after_[s] : tail.weight[n - 1] + weight;
  raise(weight_tail, constrained_tail(s, kWeightGradient, n));
  double& after = tail.input[n];
  after = std::max(weight + weight_tail, n * input + (n + 1) * weight + after_[s]);
  if (n > 0) raise(after, tail.input[n - 1] + input);
  for (const StageLink& l : model_.before[s])
    if (n == 0 || same_micro_batches(s, l.stage))
      raise(after, l.time + model_.input(l.stage) + tail_[l.stage].input[n]);
  raise(after, constrained_tail(s, kInputGradient, n));
}

void HeadTailTimes::forward_tail(int s, int n) {
  Times& tail = tail_[s];
  if (n >= std::ssize(tail.forward)) return;
  const StageTimes& t = model_.times[s];
  const double back = t.prelude + model_.input(s);
  double& after = tail.forward[n];
  after = std::max({back + tail.input[n], n * t.forward + (n + 1) * back + tail.input.front(),
                    n * t.forward + (n + 1) * (back + model_.weight[s]) + after_[s]});
  if (n > 0) raise(after, tail.forward[n - 1] + t.forward);
  for (const StageLink& l : model_.after[s])
    if (n == 0 || same_micro_batches(s, l.stage))
      raise(after, l.time + model_.times[l.stage].forward + tail_[l.stage].forward[n]);
  raise(after, constrained_tail(s, kForward, n));
}

}  // namespace stagecraft::synthesis
