// The steps of a search after its plans are listed: plans of least time, cost or energy; orders of work; the Pareto
// front. search() in choices.cpp runs them in this order.

#include "sim/search/choice_search.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

// What is decided after a batch does not depend on the number of threads. Orders are searched for in smaller batches,
// because each takes long and may make the next superfluous.
constexpr std::size_t kBatch = 32, kTrialsOfBatch = 8, kSmallestOfBatch = 4, kBatchOfOrders = 8;
constexpr int kWithoutMargin = 4;       // Times the patience.
constexpr int kFewestInVain = 40;       // Simulations.
constexpr int kOrderPatience = 5;       // Times the patience.
constexpr int kPlansOfSimulation = 10;  // A plan takes about a tenth of the time of a simulation.

}  // namespace

bool ChoiceSearch::is_out_of_patience() const {
  if (!best_ && !best_tight_) return false;
  const double factor = best_ ? 1 : kWithoutMargin;  // What leaves the margin free may still be found.
  const int simulations = table_.simulated - improved_at_;
  const int patience = std::max(asked_.patience, asked_.patience_of_schedule * static_cast<int>(policies_.size()));
  return simulations >= factor * patience ||
         (simulations >= kFewestInVain && ops_ - improved_at_ops_ >= factor * asked_.patience_ops);
}

void ChoiceSearch::take_smallest(std::vector<int>& batch) {
  while (!trials_.empty() && batch.size() < kSmallestOfBatch)
    batch.push_back(trials_.take_smallest([this](int number) { return tasks_[number].memory.value; }));
}

void ChoiceSearch::find_shortest() {
  while (!(plans_.empty() && trials_.empty()) && !stopping()) {
    const double effort = std::min(plans_.least_effort(), trials_.least_effort());
    if (is_out_of_patience()) {
      table_.patience = table_.simulated - improved_at_;
      improved_at_ = table_.simulated, improved_at_ops_ = ops_;
      for (TaskQueue* queue : {&plans_, &trials_})
        while (queue->least_effort() <= effort) aside_.push_back(queue->take());
      continue;
    }
    std::vector<int> batch;
    // Where no plan of the shortest bounds fits, a short search would end without an answer.
    if (table_.unfit > 0 && !best_ && !best_tight_) take_smallest(batch);
    take(trials_, effort, kTrialsOfBatch, batch);
    take(plans_, effort, kBatch, batch);
    take(trials_, effort, kBatch, batch);
    run_batch(batch);
  }
  set_all_aside();
}

void ChoiceSearch::set_all_aside() {
  for (TaskQueue* queue : {&plans_, &trials_})
    for (const int number : queue->take_all()) aside_.push_back(number);
}

void ChoiceSearch::find_orders() {
  std::vector<std::tuple<double, double, int>> plans;
  for (std::size_t i = 0; i < orders_.size(); ++i) {
    const auto at = best_of_plan_.find(orders_[i].combination.candidate.get());
    plans.emplace_back(at == best_of_plan_.end() ? kInfinity : at->second, orders_[i].amount, i);
  }
  std::sort(plans.begin(), plans.end());
  int searched = 0;
  double ops = 0;
  std::vector<int> batch;
  const auto flush = [&] {
    run_batch(batch);
    const std::vector<int> within_margin = tight_orders_again(batch);
    if (!within_margin.empty()) run_batch(within_margin);
    batch.clear();
  };
  for (const auto& [smallest, amount, i] : plans) {
    if (stopping() || searched >= asked_.max_orders) break;
    if (searched > 0 && ops > kOrderPatience * asked_.patience_ops) break;
    if (!may_be_better(amount, orders_[i].memory)) continue;
    batch.push_back(static_cast<int>(tasks_.size()));
    tasks_.push_back(orders_[i]);
    ordered_plans_.insert(orders_[i].combination.candidate.get());
    ++searched;
    ops += work_of(tasks_.back());
    if (batch.size() == kBatchOfOrders) flush();
  }
  flush();
}

std::vector<int> ChoiceSearch::tight_orders_again(const std::vector<int>& batch) {
  std::vector<int> again;
  for (const int number : batch) {
    const auto result = results_.find(number);
    if (result == results_.end() || !result->second.trial || !result->second.trial->choice.is_tight) continue;
    if (runner_.memory_with_margin().value <= 0 || !may_be_better(tasks_[number].amount, tasks_[number].memory))
      continue;
    SearchTask task = tasks_[number];
    task.combination.policy.leaves_margin = true;
    again.push_back(static_cast<int>(tasks_.size()));
    tasks_.push_back(std::move(task));
  }
  return again;
}

int ChoiceSearch::count_untried() {
  int count = 0;
  for (const int number : aside_) {
    const SearchTask& task = tasks_[number];
    reasons_.add_bound(task.variant ? task.variant->device_types : task.combination.candidate->properties.device_types,
                       task.amount);
    table_.has_shorter_tight |= may_be_tight_and_better(task);
    if (!may_be_better(task.amount, task.memory)) continue;
    ++count;
    if (task.variant) least_bound_ = std::min(least_bound_, task.amount);
  }
  int large = 0;
  for (const SearchTask& task : large_) {
    reasons_.add_bound(task.variant->device_types, task.amount);
    table_.has_shorter_tight |= may_be_tight_and_better(task);
    if (!may_be_better(task.amount, task.memory)) continue;
    ++large;
    least_bound_ = std::min(least_bound_, task.amount);
  }
  if (large > 0)
    reasons_.note(fmt::format("{} with more instructions than a search simulates", pluralize(large, "plan")));
  int orders = 0;
  for (const SearchTask& task : orders_) {
    const Candidate* plan = task.combination.candidate.get();
    if (ordered_plans_.contains(plan)) continue;
    reasons_.add_bound(plan->properties.device_types, task.amount);
    table_.has_shorter_tight |= may_be_tight_and_better(task);
    if (!may_be_better(task.amount, task.memory)) continue;
    untried_orders_.insert(plan);
    ++orders;
  }
  if (orders > 0)
    reasons_.note(
        fmt::format("no order was searched for on {} that could have shorter ones", pluralize(orders, "other plan")));
  for (const std::optional<Choice>& best : {best_, best_tight_})
    if (best) least_bound_ = std::min(least_bound_, best->amount);
  return count + large + orders;
}

void ChoiceSearch::find_front() {
  if (table_.front.empty()) return;
  int simulations = table_.simulated + std::min(asked_.front_simulations, asked_.max_simulations);
  std::int64_t steps = std::int64_t{kPlansOfSimulation} * asked_.front_simulations;
  std::map<int, std::set<std::tuple<double, std::uint64_t, int>>> by_devices;
  const auto sort_in = [&] {
    set_all_aside();
    for (const int number : aside_)
      by_devices[tasks_[number].devices].emplace(tasks_[number].amount, tasks_[number].tie, number);
    aside_.clear();
  };
  sort_in();
  const double begin = ops_;
  while (!stopping() && table_.simulated < simulations && steps > 0 && ops_ - begin < asked_.patience_ops) {
    std::vector<int> batch;
    for (bool more = true; more && batch.size() < kBatch;) {
      more = false;
      for (auto& [devices, tasks] : by_devices) {
        while (!tasks.empty()) {
          const int number = std::get<2>(*tasks.begin());
          tasks.erase(tasks.begin());
          if (is_covered(tasks_[number])) {
            ++table_.dropped_by_bound;
            continue;
          }
          batch.push_back(number), more = true;
          break;
        }
      }
    }
    if (batch.empty()) break;
    steps -= static_cast<std::int64_t>(batch.size());
    run_batch(batch);
    sort_in();
  }
  for (const auto& [devices, tasks] : by_devices)
    for (const auto& [amount, tie, number] : tasks)
      if (is_covered(tasks_[number]))
        ++table_.dropped_by_bound;
      else if (table_.cut_short = true; !may_be_better(amount, tasks_[number].memory))
        ++table_.untried_smaller;
  if (asked_.max_orders == std::numeric_limits<int>::max()) find_orders_on_fronts();
}

void ChoiceSearch::find_orders_on_fronts() {
  std::set<const Candidate*> plans;
  for (const auto& [recompute, front] : fronts_)
    for (const Choice& c : front) plans.insert(tried_[c.id].candidate.get());
  std::vector<int> batch;
  for (const SearchTask& task : orders_) {
    const Candidate* plan = task.combination.candidate.get();
    if (!plans.contains(plan) || ordered_plans_.contains(plan) || stopping()) continue;
    batch.push_back(static_cast<int>(tasks_.size()));
    tasks_.push_back(task);
    ordered_plans_.insert(plan);
    if (batch.size() == kBatchOfOrders) run_batch(batch), batch.clear();
  }
  run_batch(batch);
}

}  // namespace stagecraft
