// The queue of plans to make and combinations to simulate, the least effort and then the best bound first; and the
// simulations of a plan, one for each policy that can run it.

#include "sim/search/search_tasks.hpp"

#include <algorithm>

#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

/// Whether 1F1B is tried, with weights that are never stale, which every other schedule has too.
bool has_1f1b(const std::vector<SchedulingPolicy>& policies) {
  const auto is_1f1b = [](const SchedulingPolicy& p) { return p.schedule->name == "1f1b"; };
  const auto at = std::find_if(policies.begin(), policies.end(), is_1f1b);
  return at != policies.end() && (at->weights == "auto" || at->weights == "flush") &&
         std::all_of(policies.begin(), policies.end(),
                     [&](const SchedulingPolicy& p) { return p.weights == at->weights; });
}

/// Whether the schedule takes the stages where the plan has them.
bool can_run(const SchedulingPolicy& policy, const Candidate& c) {
  const PlanVariant& v = c.variant;
  if (policy.order)
    return !v.both_ways && placement_of(policy.shape.placed_as()) == v.placement &&
           c.properties.stages == policy.shape.stages && v.micro_batches == policy.shape.micro_batches;
  const bool any_placement = policy.effort == 2 && !v.both_ways;
  if (!any_placement && placement_of(*policy.schedule) != v.placement) return false;
  if (v.both_ways && v.both_ways != policy.schedule) return false;
  return v.chunks <= 1 || any_placement || policy.schedule->chunks.has(v.chunks);
}

}  // namespace

double TaskQueue::least_effort() const { return entries_.empty() ? kInfinity : std::get<0>(*entries_.begin()); }

int TaskQueue::take() {
  const int number = std::get<3>(*entries_.begin());
  entries_.erase(entries_.begin());
  return number;
}

int TaskQueue::take_smallest(const std::function<double(int number)>& amount_of) {
  const auto smallest = std::min_element(entries_.begin(), entries_.end(), [&](const auto& a, const auto& b) {
    return amount_of(std::get<3>(a)) < amount_of(std::get<3>(b));
  });
  const int number = std::get<3>(*smallest);
  entries_.erase(smallest);
  return number;
}

std::vector<int> TaskQueue::take_all() {
  std::vector<int> numbers;
  for (const auto& entry : entries_) numbers.push_back(std::get<3>(entry));
  entries_.clear();
  return numbers;
}

int TaskQueue::count_if(const std::function<bool(double)>& has_amount) const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(),
                                        [&](const auto& entry) { return has_amount(std::get<1>(entry)); }));
}

std::vector<SearchTask> simulations_of(const std::shared_ptr<const Candidate>& candidate, int effort,
                                       const std::vector<SchedulingPolicy>& policies, const CombinationRunner& runner) {
  const Candidate& c = *candidate;
  // A single stage never waits, so no order is shorter than 1F1B's, or keeps less.
  const bool alone = c.properties.stages == 1 && !c.variant.both_ways && has_1f1b(policies);
  std::vector<SearchTask> tasks;
  for (const SchedulingPolicy& policy : policies) {
    if ((alone && policy.schedule->name != "1f1b" && !policy.order) || !can_run(policy, c)) continue;
    const Seconds bound = !policy.schedule->flushes ? std::max(c.variant.bound, c.bound.work)
                          : policy.splits           ? c.properties.period
                                                    : std::max(c.properties.period, c.bound.unsplit);
    tasks.push_back({.combination = {candidate, policy},
                     .bound = bound,
                     .amount = runner.least_amount(c, bound),
                     .memory = c.bound.memory,
                     .devices = c.properties.devices,
                     .effort = std::max(effort, policy.effort),
                     .tie = static_cast<std::uint64_t>(&policy - policies.data())});
  }
  return tasks;
}

}  // namespace stagecraft
