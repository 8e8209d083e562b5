#include "sim/search/choice_search.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "sim/core/random.hpp"
#include "sim/core/text.hpp"
#include "sim/search/parallel_tasks.hpp"

namespace stagecraft {
namespace {

constexpr double kMostInstructions = 3e6;  // One simulation takes about a second.

}  // namespace

void ChoiceSearch::add(SearchTask task) {
  const auto number = static_cast<int>(tasks_.size());
  Rng rng(asked_.seed, fmt::format("{}", number));
  if (asked_.seed != ChoiceOptions{}.seed) task.tie = static_cast<std::uint64_t>(rng.integer(0, 1 << 30));
  (task.variant ? plans_ : trials_).add(task, number);
  tasks_.push_back(std::move(task));
}

bool ChoiceSearch::is_covered(Seconds bound, Bytes memory, int devices) const {
  Choice c;
  c.period = bound, c.memory = memory, c.devices = devices;
  return is_covered(c);
}

bool ChoiceSearch::is_covered(const Choice& c) const {
  return std::any_of(table_.front.begin(), table_.front.end(),
                     [&](const Choice& other) { return covers_when_known(other, c); });
}

bool ChoiceSearch::stopping() {
  if (!table_.stopped.empty()) return true;
  if (asked_.stop()) table_.stopped = "interrupted";
  if (asked_.time && seconds() >= asked_.time->value) table_.stopped = "the time is over";
  if (table_.stopped.empty() && table_.simulated >= asked_.max_simulations) table_.stopped = "--most";
  return !table_.stopped.empty();
}

void ChoiceSearch::take(TaskQueue& queue, double effort, std::size_t size, std::vector<int>& batch) {
  while (!queue.empty() && batch.size() < size && queue.least_effort() <= effort) {
    const int number = queue.take();
    (may_be_shorter(tasks_[number].bound) ? batch : aside_).push_back(number);
  }
}

void ChoiceSearch::run_batch(const std::vector<int>& batch) {
  std::vector<TaskResult> results(batch.size());
  const std::thread::id main = std::this_thread::get_id();
  run_tasks(static_cast<int>(batch.size()), threads_, [&](int i) {
    if (!must_hurry()) results[i] = result_of(tasks_[batch[i]]);
    if (std::this_thread::get_id() == main) show();
  });
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (results[i].done)
      take_in(batch[i], results[i]);
    else
      aside_.push_back(batch[i]);
  saved_.save(false);
}

TaskResult ChoiceSearch::result_of(const SearchTask& task) const {
  TaskResult result{.done = true};
  if (task.variant) {
    result.candidate = runner_.candidate(*task.variant, kMostInstructions, result.too_large_to_simulate);
    return result;
  }
  result.trial = trial_of(task.combination);
  return result;
}

Trial ChoiceSearch::trial_of(const Combination& combination) const {
  const auto worth = [this](const Choice& c) { return may_be_shorter(c.period) || !is_covered(c); };
  if (!asked_.resume.empty())
    if (std::optional<Trial> saved = saved_.find(join(runner_.sets_of(combination)))) {
      Choice c = combination.candidate->properties;
      const Choice& s = saved->choice;
      c.schedule = combination.policy.schedule->name;
      c.period = s.period, c.makespan = s.makespan, c.throughput = s.throughput, c.memory = s.memory;
      c.filled = s.filled, c.work = s.work, c.unexchanged = s.unexchanged, c.weights = s.weights;
      c.limit = s.limit, c.replayed = s.replayed;
      const bool complete = !asked_.contended || c.replayed || saved->result != TrialResult::Ran || !worth(c);
      saved->choice = std::move(c);
      if (complete) return *saved;
    }
  return runner_.run(combination, asked_.contended, worth);
}

void ChoiceSearch::take_in(int number, const TaskResult& result) {
  ++done_;
  const SearchTask task = tasks_[number];  // A copy, because add() makes the list grow.
  if (task.variant)
    take_in_plan(task, result);
  else
    take_in_trial(task, *result.trial);
}

void ChoiceSearch::take_in_plan(const SearchTask& task, const TaskResult& result) {
  ++table_.plans;
  table_.cut_short |= result.too_large_to_simulate;
  if (!result.candidate) return;
  const Candidate& c = *result.candidate;
  if (!c.bound.fits) {
    if (table_.too_large++ == 0 || c.bound.memory < table_.least_memory) table_.least_memory = c.bound.memory;
    return;
  }
  shortest_bound_ = std::min(shortest_bound_, c.properties.period);
  for (SearchTask& next : simulations_of(result.candidate, task.effort, policies_))
    if (next.combination.policy.effort < 2)
      add(std::move(next));
    else
      orders_.push_back(std::move(next));
}

void ChoiceSearch::take_in_trial(const SearchTask& task, const Trial& trial) {
  saved_.add(join(runner_.sets_of(task.combination)), trial);
  const std::string name(task.combination.policy.schedule->name);
  if (trial.result == TrialResult::Refused) {  // The schedule wants other numbers of stages or micro-batches.
    refused_.emplace(name, trial.why);
    return;
  }
  ++table_.simulated;
  ran_.emplace(name);
  if (trial.result == TrialResult::Unfit) {
    ++table_.unfit;
    reasons_.add_unfit(trial.choice);
    return;
  }
  keep(task.combination, trial.choice);
}

void ChoiceSearch::keep(const Combination& combination, Choice c) {
  c.id = static_cast<int>(tried_.size());
  tried_.push_back(combination);
  reasons_.add(c);
  const auto [entry, is_new] = shortest_of_plan_.try_emplace(combination.candidate.get(), known_period(c));
  if (!is_new) entry->second = std::min(entry->second, known_period(c));
  if (may_be_shorter(known_period(c)) && (!asked_.contended || c.replayed)) best_ = c;
  if (asked_.contended && !c.replayed) return;  // Another covers it even without contention.
  put(c, table_.front);
  put(c, fronts_[c.recompute]);
}

void ChoiceSearch::put(const Choice& c, std::vector<Choice>& front) {
  for (const Choice& other : front)
    if (covers_when_known(other, c)) return;
  std::erase_if(front, [&](const Choice& other) { return covers_when_known(c, other); });
  front.push_back(c);
}

}  // namespace stagecraft
