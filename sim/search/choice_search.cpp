// Runs the tasks of a search in batches on workers of this and other processes, and keeps what each result says;
// choice_phases.cpp decides which come next.

#include "sim/search/choice_search.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"
#include "sim/search/trial_json.hpp"

namespace stagecraft {
namespace {

constexpr double kMostInstructions = 3e6;  // One simulation takes about a second.
constexpr double kMpiGraceSeconds = 0.5;   // Seconds that other processes have to end on time too.
constexpr std::size_t kReplays = 4;        // Simulations with contention between two decisions.
constexpr double kMuchLess = 0.999;        // What counts as progress.
constexpr double kOrderEffort = 100;       // A search for an order takes as long as about 100 simulations.

}  // namespace

double work_of(const SearchTask& task) {
  if (task.variant) return task.variant->searches ? kInfinity : task.devices;
  const Choice& plan = task.combination.candidate->properties;
  const double ops = static_cast<double>(plan.stages) * plan.replicas * plan.micro_batches;
  return task.combination.policy.effort < 2 ? ops : kOrderEffort * ops;
}

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

/// With several processes the ends of a batch say whether time or a signal ends the search.
bool ChoiceSearch::stopping() {
  if (!table_.stopped.empty()) return true;
  if (!farm_.is_shared()) table_.stopped = reason_to_stop();
  if (table_.stopped.empty() && table_.simulated >= asked_.max_simulations) table_.stopped = kMost;
  return !table_.stopped.empty();
}

void ChoiceSearch::take(TaskQueue& queue, double effort, std::size_t size, std::vector<int>& batch) {
  while (!queue.empty() && batch.size() < size && queue.least_effort() <= effort) {
    const int number = queue.take();
    (may_be_better(tasks_[number].amount, tasks_[number].memory) ? batch : aside_).push_back(number);
  }
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
  results_.clear();
  for (const int number : batch) results_[number] = {};
  if (!batch.empty() && !ends_early()) evaluate(batch);
  std::vector<int> ran;
  for (const int number : batch)
    if (!results_[number].done)
      aside_.push_back(number);
    else if (waits_for_replay(results_[number]))
      ran.push_back(number);
    else
      take_in(number, results_[number]);
  replay(std::move(ran));
  saved_.save(false);
}

bool ChoiceSearch::waits_for_replay(const TaskResult& result) const {
  return asked_.contended && result.trial && result.trial->result == TrialResult::Ran;
}

void ChoiceSearch::replay(std::vector<int> trials) {
  const auto choice = [&](int number) -> const Choice& { return results_[number].trial->choice; };
  std::stable_sort(trials.begin(), trials.end(), [&](int a, int b) { return choice(a).amount < choice(b).amount; });
  for (std::size_t next = 0; next < trials.size();) {
    std::vector<int> few, jobs;  // `jobs`: what of `few` a saved search lacks.
    for (; next < trials.size() && few.size() < kReplays; ++next) {
      const int number = trials[next];
      if (choice(number).replayed)
        few.push_back(number);
      else if (ends_early())
        aside_.push_back(number);
      else if (is_worth(choice(number)))
        few.push_back(number), jobs.push_back(number + kReplayJob), results_[number].done = false;
      else
        take_in(number, results_[number]);
    }
    if (!jobs.empty()) distribute(jobs);
    for (const int number : few)
      if (results_[number].done)
        take_in(number, results_[number]);
      else
        aside_.push_back(number);
  }
}

namespace {

/// As messages between processes have it.
Json json_of(const TaskResult& result) {
  if (result.trial) return JsonObject{{"trial", json_of(std::string(), *result.trial)}};
  return JsonObject{{"candidate", result.candidate ? json_of(*result.candidate) : Json()},
                    {"too_large", result.too_large_to_simulate}};
}

TaskResult result_from(const std::string& text, const SearchTask& task, const CombinationRunner& runner) try {
  const Json json = Json::parse(text).value_or(Json());
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
} catch (const JsonError& e) {
  throw BackendError(fmt::format("another process answers a task with something else than its result: {}", e.what()));
}

}  // namespace

std::string ChoiceSearch::description_of(int job) const {
  const SearchTask& task = tasks_[task_of(job)];
  if (task.variant) return Json(JsonObject{{"variant", task.variant->number}}).dump();
  const SchedulingPolicy& policy = task.combination.policy;
  const auto at = std::find_if(policies_.begin(), policies_.end(), [&](const SchedulingPolicy& p) {
    return p.name() == policy.name() && p.weights == policy.weights;
  });
  const Trial* ran = job == task_of(job) ? nullptr : &*results_.at(task_of(job)).trial;
  return Json(JsonObject{{"variant", task.combination.candidate->variant.number},
                         {"policy", at - policies_.begin()},
                         {"leaves_margin", policy.leaves_margin},
                         {"ran", ran ? json_of(std::string(), *ran) : Json()}})
      .dump();
}

namespace {

/// A number below `count` in the description of a task; InputError for anything else.
std::size_t index_in(const Json& description, const char* key, std::size_t count) {
  const Json* number = description.find(key);
  if (!number || !number->is_whole() || number->number() < 0 || number->number() >= static_cast<double>(count))
    throw InputError(fmt::format("'{}' of a task is no number below {}", key, count));
  return static_cast<std::size_t>(number->number());
}

}  // namespace

std::string ChoiceSearch::evaluate_described(const std::string& description) try {
  const Json json = Json::parse(description).value_or(Json());
  const PlanVariant& variant = variants_.list[index_in(json, "variant", variants_.list.size())];
  TaskResult result{.done = true};
  {
    const std::lock_guard lock(mutex_);
    result.candidate = variant_plans_[variant.number];
  }
  if (!result.candidate) {
    result.candidate = runner_.candidate(variant, kMostInstructions, result.too_large_to_simulate);
    const std::lock_guard lock(mutex_);
    variant_plans_[variant.number] = result.candidate;
  }
  if (!json.find("policy")) return json_of(result).dump();
  if (!result.candidate) throw InputError("a task simulates a plan that does not exist");
  Combination combination{result.candidate, policies_[index_in(json, "policy", policies_.size())]};
  combination.policy.leaves_margin = json.at("leaves_margin") == Json(true);
  if (json.at("ran").is_null()) {
    result.trial = runner_.run(combination);
  } else {
    result.trial = with_properties(trial_from(json.at("ran")), combination);
    runner_.replay(combination, *result.trial);
  }
  return json_of(result).dump();
} catch (const JsonError& e) {
  throw InputError(fmt::format("the task is none of a search: {}", e.what()));
}

/// Starts with the longest tasks, so that the workers end together.
void ChoiceSearch::evaluate(std::vector<int> batch) {
  std::stable_sort(batch.begin(), batch.end(), [&](int a, int b) { return work_of(tasks_[a]) > work_of(tasks_[b]); });
  std::erase_if(batch, [this](int number) {
    results_[number].trial = saved_trial(tasks_[number]);
    return results_[number].done = results_[number].trial.has_value();
  });
  distribute(batch);
}

void ChoiceSearch::distribute(const std::vector<int>& jobs) {
  const auto is_over = [this] {
    show();
    return asked_.stop() || (asked_.time && seconds() > asked_.time->value + kMpiGraceSeconds);
  };
  const auto take_end = [this](const JobEnd& end) {
    TaskResult& result = results_.at(task_of(end.job));
    if (end.how == JobEnd::How::Undone)
      table_.stopped = end.text;
    else if (end.how == JobEnd::How::Done && !result.done)
      result = result_from(end.text, tasks_[task_of(end.job)], runner_);
    if (result.candidate) kept_by_[result.candidate.get()] = end.rank;
  };
  farm_.run(jobs, is_over, take_end, [this](int job) {
    const auto at = kept_by_.find(tasks_[task_of(job)].combination.candidate.get());
    return at == kept_by_.end() ? -1 : at->second;
  });
  if (table_.stopped == "interrupted") farm_.leave_at_once();
}

bool ChoiceSearch::is_worth(const Choice& c) const {
  return may_be_better(c.amount, c.memory) ||
         std::none_of(table_.front.begin(), table_.front.end(),
                      [&](const Choice& other) { return covers_when_known(other, c); });
}

TaskResult ChoiceSearch::result_of(int job) const {
  const SearchTask& task = tasks_[task_of(job)];
  TaskResult result = results_.at(task_of(job));
  result.done = true;
  if (task.variant)
    result.candidate = runner_.candidate(*task.variant, kMostInstructions, result.too_large_to_simulate);
  else if (job != task_of(job))
    runner_.replay(task.combination, *result.trial);
  else
    result.trial = runner_.run(task.combination);
  return result;
}

std::optional<Trial> ChoiceSearch::saved_trial(const SearchTask& task) const {
  if (task.variant || asked_.resume.empty()) return {};
  std::optional<Trial> trial = saved_.find(join(runner_.sets_of(task.combination)));
  if (!trial) return {};
  trial = with_properties(std::move(*trial), task.combination);
  Choice& c = trial->choice;
  runner_.set_amount(task.combination, c);
  const bool is_complete = !asked_.contended || c.replayed || trial->result != TrialResult::Ran;
  return is_complete || !is_worth(c) ? trial : std::nullopt;
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
    leave_out_large(c.bound.memory);
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

void ChoiceSearch::leave_out_large(Bytes memory) {
  if (table_.too_large++ == 0 || memory < table_.least_memory) table_.least_memory = memory;
}

void ChoiceSearch::take_in_trial(const SearchTask& task, const Trial& trial) {
  saved_.add(join(runner_.sets_of(task.combination)), trial);
  const std::string name = task.combination.policy.name();
  if (trial.result == TrialResult::Refused) {  // The schedule wants other numbers of stages or micro-batches.
    refused_.emplace(name, trial.why);
    return;
  }
  ++table_.simulated;
  ops_ += work_of(task);
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
  if (!asked_.contended || c.replayed) take_best(c);
  if (asked_.contended && !c.replayed) return;  // Another covers it even without contention.
  put(c, table_.front);
  put(c, fronts_[c.recompute]);
}

void ChoiceSearch::take_best(const Choice& c) {
  std::optional<Choice>& best = c.is_tight ? best_tight_ : best_;
  if (best && c.amount >= best->amount * kLess) return;
  if (!best || c.amount < best->amount * kMuchLess) improved_at_ = table_.simulated, improved_at_ops_ = ops_;
  best = c;
}

void ChoiceSearch::put(const Choice& c, std::vector<Choice>& front) {
  for (const Choice& other : front)
    if (covers_when_known(other, c)) return;
  std::erase_if(front, [&](const Choice& other) { return covers_when_known(c, other); });
  front.push_back(c);
}

}  // namespace stagecraft
