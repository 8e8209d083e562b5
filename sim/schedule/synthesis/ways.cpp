#include "sim/schedule/synthesis/ways.hpp"

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

Ways::Ways(const Least& least, int rank)
    : least_(least), p_(least.problem), rank_(rank), head_(p_.rank_of.size()), tail_(p_.rank_of.size()) {
  for (int s = 0; s < static_cast<int>(head_.size()); ++s) {
    after_.push_back(after_gradients(s));
    for (auto* list : {&tail_[s].forward, &tail_[s].input, &tail_[s].weight}) list->assign(p_.micros[s], kNowhere);
  }
  for (const int s : p_.order) {
    bool reached = counts(s);
    for (const Link& l : least_.before[s]) reached |= !head_[l.stage].forward.empty();
    if (!reached) continue;
    for (auto* list : {&head_[s].forward, &head_[s].input, &head_[s].weight}) list->assign(p_.micros[s], 0);
  }
  for (int k = 0; k < least_.most_micros; ++k) {
    for (const int s : p_.order) begin(s, k);
    for (auto it = p_.order.rbegin(); it != p_.order.rend(); ++it) turn(*it, k);
  }
  for (int n = 0; n < least_.most_micros; ++n) {
    for (const int s : p_.order) end_gradient(s, n);
    for (auto it = p_.order.rbegin(); it != p_.order.rend(); ++it) end_forward(*it, n);
  }
}

double Ways::there_and_back() const {
  double longest = 0;
  for (std::size_t s = 0; s < head_.size(); ++s)
    if (!head_[s].forward.empty())
      raise(longest, head_[s].forward.front() + least_.times[s].forward + tail_[s].forward.front());
  return longest;
}

void Ways::add_jobs(int s, std::vector<Job>& jobs) const {
  const StageTimes& t = least_.times[s];
  const Times &head = head_[s], &tail = tail_[s];
  const double input = least_.input(s), weight = least_.weight[s];
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

bool Ways::counts(int s) const { return rank_ == kAll || p_.rank_of[s] == rank_; }

/// Whether the micro-batches of both are the same, so that the k-th here waits for k there.
bool Ways::alike(int a, int b) const { return p_.micros[a] == p_.micros[b]; }

bool Ways::takes_part(int s, const Exchange& e) const {
  return std::find(e.stages.begin(), e.stages.end(), s) != e.stages.end();
}

double Ways::exchange_of(int s) const {
  double longest = 0;
  for (const Exchange& e : p_.exchanges.all)
    if (takes_part(s, e)) raise(longest, e.least);
  return longest;
}

/// The least time behind the last gradient of a stage: where the weights are tied, the exchange and an update.
double Ways::after_gradients(int s) const {
  double longest = counts(s) ? 0 : kNowhere;
  for (const Exchange& e : p_.exchanges.all) {
    if (!takes_part(s, e)) continue;
    for (const int holder : e.stages)
      if (counts(holder)) raise(longest, e.least + least_.times[holder].update);
  }
  return longest;
}

/// F comes behind the one before it, behind as many on every stage on the way (the k-th of them ends no earlier than k
/// have), and behind what has to leave first where there is no room.
void Ways::begin(int s, int k) {
  Times& head = head_[s];
  if (k >= std::ssize(head.forward)) return;
  double& start = head.forward[k];
  if (k > 0) raise(start, head.forward[k - 1] + least_.times[s].forward);
  for (const Link& l : least_.before[s]) {
    const auto& other = head_[l.stage].forward;
    if (!other.empty() && (k == 0 || alike(s, l.stage)))
      raise(start, other[k] + least_.times[l.stage].forward + l.time);
  }
  for (const Wait& w : least_.waits[s])
    if (k >= w.most && !head_[w.stage].forward.empty()) raise(start, end_of(w.stage, w.kind, k - w.most));
}

double Ways::end_of(int s, Kind kind, int k) const {
  const Times& head = head_[s];
  if (kind == kForward) return head.forward[k] + least_.times[s].forward;
  return kind == kInputGradient ? head.input[k] + least_.input(s) : head.weight[k];
}

/// I, and the end of W: behind k+1 F on the same rank, too.
void Ways::turn(int s, int k) {
  Times& head = head_[s];
  if (k >= std::ssize(head.forward)) return;
  const StageTimes& t = least_.times[s];
  const double input = least_.input(s), weight = least_.weight[s], there = t.forward + t.prelude;
  double& start = head.input[k];
  start = std::max(head.forward[k] + there, head.forward.front() + (k + 1) * there + k * input);
  for (const Link& l : least_.behind[s]) {
    const auto& other = head_[l.stage].input;
    if (k == 0 || alike(s, l.stage)) raise(start, other[k] + least_.input(l.stage) + l.time);
  }
  if (k > 0) raise(start, head.input[k - 1] + input);
  double& end = head.weight[k];
  end = std::max(start + input + weight, head.forward.front() + (k + 1) * (there + input + weight));
  if (k > 0) raise(end, head.weight[k - 1] + weight);
}

double Ways::wanted(int s, Kind kind, int n) const {
  double longest = kNowhere;
  for (const Wait& w : least_.waited[s])
    if (w.kind == kind && n >= w.most)
      raise(longest, least_.times[w.stage].forward + tail_[w.stage].forward[n - w.most]);
  return longest;
}

/// The same from the end: with n behind it, W is in front of the F that its leaving makes room for.
void Ways::end_gradient(int s, int n) {
  Times& tail = tail_[s];
  if (n >= std::ssize(tail.forward)) return;
  const double input = least_.input(s), weight = least_.weight[s];
  double& behind_weight = tail.weight[n];
  behind_weight = n == 0 ? after_[s] : tail.weight[n - 1] + weight;
  raise(behind_weight, wanted(s, kWeightGradient, n));
  double& behind = tail.input[n];
  behind = std::max(weight + behind_weight, n * input + (n + 1) * weight + after_[s]);
  if (n > 0) raise(behind, tail.input[n - 1] + input);
  for (const Link& l : least_.before[s])
    if (n == 0 || alike(s, l.stage)) raise(behind, l.time + least_.input(l.stage) + tail_[l.stage].input[n]);
  raise(behind, wanted(s, kInputGradient, n));
}

void Ways::end_forward(int s, int n) {
  Times& tail = tail_[s];
  if (n >= std::ssize(tail.forward)) return;
  const StageTimes& t = least_.times[s];
  const double back = t.prelude + least_.input(s);
  double& behind = tail.forward[n];
  behind = std::max({back + tail.input[n], n * t.forward + (n + 1) * back + tail.input.front(),
                     n * t.forward + (n + 1) * (back + least_.weight[s]) + after_[s]});
  if (n > 0) raise(behind, tail.forward[n - 1] + t.forward);
  for (const Link& l : least_.behind[s])
    if (n == 0 || alike(s, l.stage)) raise(behind, l.time + least_.times[l.stage].forward + tail_[l.stage].forward[n]);
  raise(behind, wanted(s, kForward, n));
}

}  // namespace stagecraft::synthesis
