#include "sim/search/choice_search.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/core/threads.hpp"
#include "sim/search/trial_json.hpp"

namespace stagecraft {
namespace {

constexpr double kMostInstructions = 3e6;  // One simulation takes about a second.
constexpr double kMpiGraceSeconds = 0.5;   // Seconds that other processes have to end on time too.
constexpr double kOrderEffort = 100;       // A search for an order takes as long as about 100 simulations.

/// A guess of the relative time that a task takes: the ops of a simulation; for a plan, the devices.
double work_of(const SearchTask& task) {
  if (task.variant) return task.variant->searches ? kInfinity : task.devices;
  const Choice& plan = task.combination.candidate->properties;
  const double ops = static_cast<double>(plan.stages) * plan.replicas * plan.micro_batches;
  return task.combination.policy.effort < 2 ? ops : kOrderEffort * ops;
}

}  // namespace

void ChoiceSearch::add(SearchTask task) {
  const auto number = static_cast<int>(tasks_.size());
  Rng rng(asked_.seed, fmt::format("{}", number));
  if (asked_.seed != ChoiceOptions{}.seed) task.tie = static_cast<std::uint64_t>(rng.integer(0, 1 << 30));
  (task.variant ? plans_ : trials_).add(task, number);
  tasks_.push_back(std::move(task));
}

bool ChoiceSearch::is_covered(const SearchTask& task) const {
  Choice c;
  c.period = task.bound, c.memory = task.memory, c.devices = task.devices, c.amount = task.amount;
  return is_covered(c);
}

bool ChoiceSearch::is_covered(const Choice& c) const {
  return std::any_of(table_.front.begin(), table_.front.end(),
                     [&](const Choice& other) { return covers_when_known(other, c); });
}

/// With several processes the first one says when time or a signal ends the search, with the results of a batch.
bool ChoiceSearch::stopping() {
  if (!table_.stopped.empty()) return true;
  if (!processes_.are_several()) table_.stopped = reason_to_stop();
  if (table_.stopped.empty() && table_.simulated >= asked_.max_simulations) table_.stopped = kMost;
  return !table_.stopped.empty();
}

void ChoiceSearch::take(TaskQueue& queue, double effort, std::size_t size, std::vector<int>& batch) {
  while (!queue.empty() && batch.size() < size && queue.least_effort() <= effort) {
    const int number = queue.take();
    (may_be_better(tasks_[number].amount) ? batch : aside_).push_back(number);
  }
}

/// Starts with the longest tasks, so that the threads end together.
void ChoiceSearch::evaluate(const std::vector<int>& batch, std::vector<int> which, std::vector<TaskResult>& results) {
  std::stable_sort(which.begin(), which.end(),
                   [&](int a, int b) { return work_of(tasks_[batch[a]]) > work_of(tasks_[batch[b]]); });
  const std::thread::id main = std::this_thread::get_id();
  run_tasks(static_cast<int>(which.size()), threads_, [&](int i) {
    const StopScope scope([this] { return must_hurry(); });
    try {
      stop_point();
      results[which[i]] = result_of(tasks_[batch[which[i]]]);
    } catch (const Stopped&) {  // Its task stays undone.
    }
    if (std::this_thread::get_id() == main) show();
  });
}

/// Sets simulations aside that would exceed the most that are allowed.
std::vector<int> ChoiceSearch::within_limit(const std::vector<int>& batch) {
  std::vector<int> retained;
  int left = asked_.max_simulations - table_.simulated;
  for (const int number : batch) (tasks_[number].variant || left-- > 0 ? retained : aside_).push_back(number);
  return retained;
}

void ChoiceSearch::run_batch(const std::vector<int>& asked_batch) {
  const std::vector<int> batch = within_limit(asked_batch);
  std::vector<TaskResult> results(batch.size());
  if (processes_.are_several() && !batch.empty() && !ends_early()) {
    evaluate_together(batch, results);
  } else {
    std::vector<int> whole(batch.size());
    std::iota(whole.begin(), whole.end(), 0);
    evaluate(batch, whole, results);
  }
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (results[i].done)
      take_in(batch[i], results[i]);
    else
      aside_.push_back(batch[i]);
  if (processes_.is_first()) saved_.save(false);
}

namespace {

/// As messages between processes have it.
Json json_of(const TaskResult& result) {
  if (result.trial) return JsonObject{{"trial", json_of(std::string(), *result.trial)}};
  return JsonObject{{"candidate", result.candidate ? json_of(*result.candidate) : Json()},
                    {"too_large", result.too_large_to_simulate}};
}

TaskResult result_from(const Json& json, const SearchTask& task, const CombinationRunner& runner) {
  TaskResult result{.done = true};
  if (!task.variant) {
    result.trial = with_properties(trial_from(json.at("trial")), task.combination);
    runner.set_amount(task.combination, result.trial->choice);
    return result;
  }
  result.too_large_to_simulate = json.at("too_large") == Json(true);
  if (json.at("candidate").is_null()) return result;
  result.candidate = std::make_shared<const Candidate>(candidate_from(json.at("candidate"), *task.variant));
  return result;
}

}  // namespace

void ChoiceSearch::evaluate_together(const std::vector<int>& batch, std::vector<TaskResult>& results) {
  std::vector<int> preferred;
  for (const int number : batch) {
    const auto at = kept_by_.find(tasks_[number].combination.candidate.get());
    preferred.push_back(at == kept_by_.end() ? -1 : at->second);
  }
  const std::vector<int> owners = processes_.owners(preferred);
  BatchResults joined{std::vector<Json>(batch.size()), {}};
  const auto evaluate_shares_of = [&](const std::vector<int>& ranks) {
    std::vector<int> which;
    for (int i = 0; i < std::ssize(batch); ++i)
      if (joined.results[i].is_null() && std::find(ranks.begin(), ranks.end(), owners[i]) != ranks.end())
        which.push_back(i);
    evaluate(batch, which, results);
    for (const int i : which)
      if (results[i].done) joined.results[i] = json_of(results[i]);
  };
  evaluate_shares_of({processes_.rank()});
  joined.stopped = reason_to_stop();
  if (processes_.is_first()) {
    processes_.collect(joined, [this] {
      show();
      return asked_.stop() || (asked_.time && seconds() > asked_.time->value + kMpiGraceSeconds);
    });
    evaluate_shares_of(processes_.lost());
    if (joined.stopped.empty()) joined.stopped = reason_to_stop();
    if (joined.stopped == "interrupted")
      processes_.interrupt();
    else
      processes_.announce(joined);
  } else {
    joined = processes_.deliver(joined);
  }
  table_.stopped = joined.stopped;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!results[i].done && !joined.results[i].is_null())
      results[i] = result_from(joined.results[i], tasks_[batch[i]], runner_);
    if (results[i].candidate) kept_by_[results[i].candidate.get()] = owners[i];
  }
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
  const auto worth = [this](const Choice& c) { return may_be_better(c.amount) || !is_covered(c); };
  if (!asked_.resume.empty())
    if (std::optional<Trial> saved = saved_.find(join(runner_.sets_of(combination)))) {
      Trial trial = with_properties(std::move(*saved), combination);
      runner_.set_amount(combination, trial.choice);
      const Choice& c = trial.choice;
      if (!asked_.contended || c.replayed || trial.result != TrialResult::Ran || !worth(c)) return trial;
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
  if (result.too_large_to_simulate) {
    table_.cut_short = true;
    large_.push_back(task);
  }
  if (!result.candidate) return;
  const Candidate& c = *result.candidate;
  if (!c.bound.fits) {
    if (table_.too_large++ == 0 || c.bound.memory < table_.least_memory) table_.least_memory = c.bound.memory;
    return;
  }
  const bool all_flush = std::all_of(policies_.begin(), policies_.end(),
                                     [](const SchedulingPolicy& policy) { return policy.schedule->flushes; });
  const Seconds bound = all_flush ? c.properties.period : std::max(c.variant.bound, c.bound.work);
  least_bound_ = std::min(least_bound_, runner_.least_amount(c, bound));
  for (SearchTask& next : simulations_of(result.candidate, task.effort, policies_, runner_))
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
  const auto [entry, is_new] = best_of_plan_.try_emplace(combination.candidate.get(), c.amount);
  if (!is_new) entry->second = std::min(entry->second, c.amount);
  if (may_be_better(c.amount) && (!asked_.contended || c.replayed)) best_ = c;
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
