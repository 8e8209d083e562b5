#include "sim/schedule/synthesis/bounds.hpp"

#include <algorithm>
#include <queue>
#include <set>

#include <fmt/format.h>

namespace stagecraft::synthesis {
namespace {

std::size_t at(int i) { return Problem::at(i); }

double gradients(const StageTimes& t) { return std::min(t.input_gradient + t.weight_gradient, t.backward); }
double gradient(const StageTimes& t) { return std::min(t.input_gradient, t.backward); }

/// The quickest replica of each stage. B may take less than I and W together, so whichever is shorter counts, and B
/// alone where backwards are not split.
std::vector<StageTimes> least_times(const Problem& p, bool split) {
  std::vector<StageTimes> times = p.least;
  for (StageTimes& t : times)
    if (!split) t.input_gradient = t.backward, t.weight_gradient = 0;
  return times;
}

/// A message between two stages, whatever the micro-batch.
struct Link {
  int stage;
  double time;
};
std::vector<Link> links_of(const Problem& p, int stage, const std::vector<std::vector<Output>>& outputs) {
  std::vector<Link> links;
  if (p.micros[at(stage)] == 0) return links;
  for (const Output& o : outputs[at(p.first_piece[at(stage)])])
    links.push_back({p.stage_of[at(o.piece)], o.exact ? o.sending + o.delay : 0});
  return links;
}

struct Job {
  double head, time, tail;
};

/// The end, tails included, of one machine that takes the job with the longest tail among those that are there and may
/// interrupt it.
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

/// The earliest start of the k-th forward, gradient and weight gradient of each stage, and the least time behind them.
/// Of one rank: from its own first start on, and to its own last end; what does not come from it, or does not come
/// back, does not count.
class Ways {
 public:
  static constexpr int kAll = -1;
  Ways(const Problem& p, const std::vector<StageTimes>& times, int rank)
      : p_(p),
        times_(times),
        rank_(rank),
        forward_(p.rank_of.size()),
        gradient_(p.rank_of.size()),
        tail_forward_(p.rank_of.size(), 0),
        tail_gradient_(p.rank_of.size(), 0),
        trip_(p.rank_of.size(), 0),
        after_(p.rank_of.size()) {
    equal_ = std::all_of(p.micros.begin(), p.micros.end(), [&](int m) { return m == p.micros.front(); });
    for (int s = 0; s < static_cast<int>(after_.size()); ++s) after_[at(s)] = after_gradients(s);
    for (const int s : p.order) go_there(s);
    for (auto it = p.order.rbegin(); it != p.order.rend(); ++it) go_back(*it);
  }

  /// From the start of a forward to the end of the gradient of the same micro-batch, which the stash waits for.
  double trip(int s) const { return trip_[at(s)]; }
  double there_and_back() const {
    double longest = 0;
    for (std::size_t s = 0; s < forward_.size(); ++s)
      if (!forward_[s].empty()) longest = std::max(longest, forward_[s].front() + times_[s].forward + tail_forward_[s]);
    return longest;
  }
  void add_jobs(int s, std::vector<Job>& jobs) const {
    const StageTimes& t = times_[at(s)];
    const double weight = gradients(t) - gradient(t);
    for (std::size_t k = 0; k < forward_[at(s)].size(); ++k) {
      const double forward = forward_[at(s)][k], back = gradient_[at(s)][k];
      jobs.push_back({forward, t.forward, tail_forward_[at(s)]});
      if (t.prelude > 0) jobs.push_back({forward + t.forward, t.prelude, gradient(t) + tail_gradient_[at(s)]});
      jobs.push_back({back, gradient(t), tail_gradient_[at(s)]});
      if (weight > 0) jobs.push_back({back + gradient(t), weight, after_[at(s)]});
    }
    if (t.update > 0 && counts(s) && !forward_[at(s)].empty())
      jobs.push_back({gradient_[at(s)].back() + gradients(t) + exchange_of(s), t.update, 0});
  }

 private:
  bool counts(int s) const { return rank_ == kAll || p_.rank_of[at(s)] == rank_; }

  bool takes_part(int s, const Exchange& e) const {
    return std::find(e.stages.begin(), e.stages.end(), s) != e.stages.end();
  }
  double exchange_of(int s) const {
    double longest = 0;
    for (const Exchange& e : p_.exchanges.all)
      if (takes_part(s, e)) longest = std::max(longest, e.least);
    return longest;
  }

  /// The least time behind the last gradient of a stage: where the weights are tied, the exchange and an update.
  double after_gradients(int s) const {
    double longest = counts(s) ? 0 : kNowhere;
    for (const Exchange& e : p_.exchanges.all) {
      if (!takes_part(s, e)) continue;
      for (const int holder : e.stages)
        if (counts(holder)) longest = std::max(longest, e.least + times_[at(holder)].update);
    }
    return longest;
  }

  void go_there(int s) {
    auto& list = forward_[at(s)];
    double first = 0;
    bool reached = counts(s);
    const std::vector<Link> before = links_of(p_, s, p_.gradient_outputs);
    for (const Link& l : before) reached |= !forward_[at(l.stage)].empty();
    double tail = gradients(times_[at(s)]) - gradient(times_[at(s)]) + after_[at(s)];
    for (const Link& l : before)
      tail = std::max(tail, l.time + gradient(times_[at(l.stage)]) + tail_gradient_[at(l.stage)]);
    tail_gradient_[at(s)] = tail;
    if (!reached) return;
    list.assign(at(p_.micros[at(s)]), 0);
    for (const Link& l : before) {
      const auto& other = forward_[at(l.stage)];
      if (other.empty()) continue;
      const double step = times_[at(l.stage)].forward + l.time;
      first = std::max(first, other.front() + step);
      for (std::size_t k = 0; equal_ && k < list.size(); ++k) list[k] = std::max(list[k], other[k] + step);
    }
    follow(list, first, times_[at(s)].forward);
  }

  void go_back(int s) {
    const StageTimes& t = times_[at(s)];
    double tail = t.prelude + gradient(t) + tail_gradient_[at(s)], away = t.prelude;
    const std::vector<Link> behind = links_of(p_, s, p_.forward_outputs);
    for (const Link& l : behind) {
      tail = std::max(tail, l.time + times_[at(l.stage)].forward + tail_forward_[at(l.stage)]);
      away = std::max(away, l.time + trip_[at(l.stage)] + time_back(l.stage, s));
    }
    tail_forward_[at(s)] = tail;
    trip_[at(s)] = t.forward + away + gradient(t);
    auto& list = gradient_[at(s)];
    if (forward_[at(s)].empty()) return;
    for (const double f : forward_[at(s)]) list.push_back(f + t.forward + t.prelude);
    double first = list.front();
    for (const Link& l : behind) {
      const auto& other = gradient_[at(l.stage)];
      const double step = gradient(times_[at(l.stage)]) + l.time;
      first = std::max(first, other.front() + step);
      for (std::size_t k = 0; equal_ && k < list.size(); ++k) list[k] = std::max(list[k], other[k] + step);
    }
    follow(list, first, gradient(t));
  }

  double time_back(int from, int to) const {
    for (const Link& l : links_of(p_, from, p_.gradient_outputs))
      if (l.stage == to) return l.time;
    return 0;
  }
  static void follow(std::vector<double>& list, double first, double time) {
    list.front() = std::max(list.front(), first);
    for (std::size_t k = 1; k < list.size(); ++k) list[k] = std::max(list[k], list[k - 1] + time);
  }

  static constexpr double kNowhere = -std::numeric_limits<double>::infinity();
  const Problem& p_;
  const std::vector<StageTimes>& times_;
  int rank_;
  bool equal_ = true;
  std::vector<std::vector<double>> forward_, gradient_;
  std::vector<double> tail_forward_, tail_gradient_, trip_, after_;
};

double end_of(const Problem& p, const Ways& ways, int rank) {
  std::vector<Job> jobs;
  for (const int s : p.stages[at(rank)]) ways.add_jobs(s, jobs);
  return one_machine(std::move(jobs));
}

void raise(double& best, std::string& reason, double value, std::string why) {
  if (value <= best * (1 + 1e-12)) return;
  best = value;
  reason = std::move(why);
}

/// From one iteration of a rank to the next: its own work and, where it waits for the gradients of tied weights, that
/// of the others that hold them, as far as it lies in between.
void wait_for_others(const Problem& p, const std::vector<StageTimes>& times, int rank, Bound& b) {
  const Ways ways(p, times, rank);
  std::set<int> ranks{rank};
  for (const Exchange& e : p.exchanges.all) {
    const auto here = [&](int s) { return p.rank_of[at(s)] == rank; };
    if (std::none_of(e.stages.begin(), e.stages.end(), here)) continue;
    for (const int s : e.stages) ranks.insert(p.rank_of[at(s)]);
  }
  for (const int r : ranks)
    raise(b.period, b.period_reason, end_of(p, ways, r), fmt::format("what rank {} waits for", rank));
}

}  // namespace

Bound lower_bound(const Problem& p, const Limit& limit, bool split) {
  const std::vector<StageTimes> times = least_times(p, split);
  const Ways ways(p, times, Ways::kAll);
  // What a rank waits for takes a look at all stages for each rank; beyond some size the simpler bounds have to do.
  constexpr double kMostLooks = 2e7;
  const bool each = static_cast<double>(p.ranks()) * p.pieces() <= kMostLooks;
  Bound b;
  const auto raise_both = [&](double value, const std::string& why) {
    raise(b.period, b.period_reason, value, why);
    raise(b.makespan, b.makespan_reason, value, why);
  };
  raise(b.makespan, b.makespan_reason, ways.there_and_back(), "one micro-batch there and back");
  for (int r = 0; r < p.ranks(); ++r) {
    double sending = 0;
    std::vector<double> held(limit.size(), 0);
    for (const int s : p.stages[at(r)]) {
      const StageTimes& t = times[at(s)];
      const int m = p.micros[at(s)];
      const double weight = gradients(t) - gradient(t);
      for (std::size_t k = 0; k < limit.size(); ++k) {
        const double last = (1 - limit[k].freed_at_input) * weight;
        held[k] += m * (limit[k].boundary[at(s)] * (ways.trip(s) + last) +
                        (limit[k].stash[at(s)] - limit[k].boundary[at(s)]) * (gradient(t) + last));
      }
      for (int piece = p.first_piece[at(s)]; piece < p.first_piece[at(s)] + m; ++piece) {
        for (const Output& o : p.forward_outputs[at(piece)]) sending += o.exact ? o.sending : 0;
        for (const Output& o : p.gradient_outputs[at(piece)]) sending += o.exact ? o.sending : 0;
      }
    }
    raise_both(p.busy[at(r)], fmt::format("the work of rank {}", r));
    raise_both(sending, fmt::format("what rank {} sends", r));
    if (each) wait_for_others(p, times, r, b);
    raise(b.makespan, b.makespan_reason, end_of(p, ways, r), fmt::format("the work of rank {}", r));
    for (std::size_t k = 0; k < limit.size(); ++k)
      if (limit[k].most[at(r)] > 0) raise_both(held[k] / limit[k].most[at(r)], fmt::format("the memory of rank {}", r));
  }
  return b;
}

}  // namespace stagecraft::synthesis
