#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "sim/search/evaluation.hpp"

namespace stagecraft {

/// A plan to make, or a combination to simulate.
struct SearchTask {
  const PlanVariant* variant = nullptr;  ///< Null for a combination.
  Combination combination = {};
  Seconds bound = {};  ///< Lower bound of the period.
  double amount = 0;   ///< Lower bound of the objective.
  Bytes memory = {};
  int devices = 0, effort = 0;
  std::uint64_t tie = 0;
};

/// Numbers of tasks, sorted by effort, amount, tie and number.
class TaskQueue {
 public:
  void add(const SearchTask& task, int number) { entries_.emplace(task.effort, task.amount, task.tie, number); }
  bool empty() const { return entries_.empty(); }
  /// Infinite if there is none.
  double least_effort() const;
  /// Removes the first task.
  int take();
  /// Removes the task with the smallest amount of another kind, the first of several.
  int take_smallest(const std::function<double(int number)>& amount_of);
  /// Removes all tasks.
  std::vector<int> take_all();
  int count_if(const std::function<bool(double)>& has_amount) const;

 private:
  std::set<std::tuple<int, double, std::uint64_t, int>> entries_;
};

/// The simulations of a plan, one for each policy that can run it; the effort of a search for an order is 2.
std::vector<SearchTask> simulations_of(const std::shared_ptr<const Candidate>&, int effort,
                                       const std::vector<SchedulingPolicy>&, const CombinationRunner&);

}  // namespace stagecraft
