#include "sim/search/choices.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/core/sha256.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "sim/experiment/version.hpp"
#include "sim/search/choice_reasons.hpp"
#include "sim/search/evaluation.hpp"
#include "sim/search/parallel_tasks.hpp"
#include "sim/search/replay.hpp"
#include "sim/search/saved_trials.hpp"

namespace stagecraft {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kMostInstructions = 3e6;  // One simulation takes about a second.
// What is decided after a batch does not depend on the number of threads. Orders are searched for in smaller batches,
// because each takes long and may make the next superfluous.
constexpr std::size_t kBatch = 32, kTrialsOfBatch = 8, kBatchOfOrders = 8;
constexpr double kLess = 1 - 1e-9;
constexpr double kBetweenProgress = 0.1;  // Seconds.
constexpr int kPlansOfSimulation = 10;    // A plan takes about a tenth of the time of a simulation.

/// A plan to make, or a combination to simulate.
struct SearchTask {
  const PlanVariant* variant = nullptr;  ///< Null for a combination.
  Combination combination = {};
  Seconds bound = {};
  Bytes memory = {};
  int devices = 0, effort = 0;
  std::uint64_t tie = 0;
};

/// Effort, bound, tie, number.
using TaskQueue = std::set<std::tuple<int, Seconds, std::uint64_t, int>>;

struct TaskResult {
  bool done = false, too_large_to_simulate = false;
  std::shared_ptr<const Candidate> candidate = {};
  std::optional<Trial> trial = {};
};

/// Enough to show the steady state. On many devices programs are long, and every schedule that is tried by default
/// repeats its iterations from the first on.
int iterations_of(const Experiment& e) {
  constexpr std::size_t kManyDevices = 128;
  return std::max(e.cluster->devices.size() > kManyDevices ? 3 : kFewestIterations, e.run.lowering.iterations);
}

PlannedExperiment plan_trained(const Experiment& configured) {
  const ScheduleDef& def = *configured.schedule.def;
  if (!def.trains)
    throw InputError(fmt::format("the scenario's schedule '{}' {}, and ways to train stages are searched for", def.name,
                                 def.tasks ? "needs a plan of tasks" : "does not train"),
                     "set run.schedule to one that does");
  return plan_experiment(configured);
}

/// A plan may need other micro-batches than the scenario, whose own plan need not exist.
std::string question_of(const Experiment& e, const ChoiceOptions& asked) {
  std::string text = fmt::format("{} {} {} {} {} {} {} {}", version(), e.scenario_hash, asked.backend, asked.contended,
                                 asked.max_simulations, asked.front_simulations, asked.max_orders, asked.seed);
  for (const std::string& name : asked.schedules) text += " schedule " + name;
  for (const std::string& name : asked.weights) text += " weights " + name;
  return sha256(text);
}

class ChoiceSearch {
 public:
  ChoiceSearch(const Experiment& configured, const ChoiceOptions& asked,
               const std::function<void(const SearchProgress&)>& progress)
      : asked_(asked),
        progress_(progress),
        threads_(thread_count(asked.threads)),
        policies_(scheduling_policies(asked.schedules, asked.weights, configured.rules.get())),
        configured_(plan_trained(configured)),
        runner_(configured_.experiment, policies_, asked.backend, iterations_of(configured)),
        saved_(asked.resume, asked.resume.empty() ? std::string() : question_of(configured, asked)) {
    table_.title = configured.title.empty() ? "(untitled)" : configured.title;
    table_.model = configured.model->name;
    table_.cluster = configured.cluster->name;
    table_.samples = configured_.plan.mini_batch;
    table_.iterations = iterations_of(configured);
    table_.notes = remarks(configured_);
    std::erase_if(policies_, [&](const SchedulingPolicy& p) { return !runner_.can_run(p); });
    for (const auto& [name, why] : runner_.refused()) refused_.emplace(name, why);
  }

  ChoiceTable run() {
    own_period();
    std::vector<const ScheduleDef*> schedules;
    for (const SchedulingPolicy& policy : policies_) schedules.push_back(policy.schedule);
    variants_ = plan_variants(configured_, schedules);
    for (const PlanVariant& v : variants_.list)
      add({.variant = &v, .bound = v.bound, .memory = v.memory, .devices = v.devices, .effort = v.searches});
    phase_ = "shortest period";
    find_shortest();
    phase_ = "orders of work";
    find_orders();
    table_.untried = count_untried();
    phase_ = "less memory, fewer devices";
    find_front();
    saved_.save(true);
    finish();
    return std::move(table_);
  }

 private:
  void own_period() {
    try {
      Experiment e = variant_of(configured_.experiment);
      e.run.lowering.iterations = table_.iterations;
      PlannedExperiment planned = configured_;
      planned.experiment = std::move(e);
      const CompiledExperiment c = compile(std::move(planned));
      table_.configured_period = stagecraft::run(c, asked_.backend).report.period;
      if (asked_.contended) table_.own_replayed = contended_result(c);
    } catch (const Infeasible&) {  // The scenario as it stands is what is to be improved.
    }
  }

  void add(SearchTask task) {
    const auto number = static_cast<int>(tasks_.size());
    Rng rng(asked_.seed, fmt::format("{}", number));
    if (asked_.seed != ChoiceOptions{}.seed) task.tie = static_cast<std::uint64_t>(rng.integer(0, 1 << 30));
    (task.variant ? plans_ : trials_).emplace(task.effort, task.bound, task.tie, number);
    tasks_.push_back(std::move(task));
  }

  bool may_be_shorter(Seconds bound) const { return !best_ || bound.value < known_period(*best_).value * kLess; }

  bool is_covered(Seconds bound, Bytes memory, int devices) const {
    Choice c;
    c.period = bound, c.memory = memory, c.devices = devices;
    return is_covered(c);
  }
  bool is_covered(const Choice& c) const {
    return std::any_of(table_.front.begin(), table_.front.end(),
                       [&](const Choice& other) { return covers_when_known(other, c); });
  }

  bool stopping() {
    if (!table_.stopped.empty()) return true;
    if (asked_.stop()) table_.stopped = "interrupted";
    if (asked_.time && seconds() >= asked_.time->value) table_.stopped = "the time is over";
    if (table_.stopped.empty() && table_.simulated >= asked_.max_simulations) table_.stopped = "--most";
    return !table_.stopped.empty();
  }
  bool must_hurry() const { return asked_.stop() || (asked_.time && seconds() >= asked_.time->value); }
  double seconds() const { return std::chrono::duration<double>(SteadyClock::now() - begin_).count(); }

  /// A batch has plans and simulations: plans alone would never end before the first simulation, because their bounds
  /// are lower, and without a first result nothing can be set aside.
  void find_shortest() {
    while (!(plans_.empty() && trials_.empty()) && !stopping()) {
      const auto effort_of = [](const TaskQueue& queue) {
        return queue.empty() ? kInfinity : static_cast<double>(std::get<0>(*queue.begin()));
      };
      const double effort = std::min(effort_of(plans_), effort_of(trials_));
      std::vector<int> batch;
      take(trials_, effort, kTrialsOfBatch, batch);
      take(plans_, effort, kBatch, batch);
      take(trials_, effort, kBatch, batch);
      run_batch(batch);
    }
    for (TaskQueue* queue : {&plans_, &trials_}) {
      for (const auto& entry : *queue) aside_.push_back(std::get<3>(entry));
      queue->clear();
    }
  }

  /// Fills the batch up to `size` tasks. Tasks of more effort wait until what this batch finds is known.
  void take(TaskQueue& queue, double effort, std::size_t size, std::vector<int>& batch) {
    while (!queue.empty() && batch.size() < size && std::get<0>(*queue.begin()) <= effort) {
      const int number = std::get<3>(*queue.begin());
      queue.erase(queue.begin());
      (may_be_shorter(tasks_[number].bound) ? batch : aside_).push_back(number);
    }
  }

  void run_batch(const std::vector<int>& batch) {
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

  TaskResult result_of(const SearchTask& task) const {
    TaskResult result{.done = true};
    if (task.variant) {
      result.candidate = runner_.candidate(*task.variant, kMostInstructions, result.too_large_to_simulate);
      return result;
    }
    result.trial = trial_of(task.combination);
    return result;
  }

  Trial trial_of(const Combination& combination) const {
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

  void take_in(int number, const TaskResult& result) {
    ++done_;
    const SearchTask task = tasks_[number];  // A copy, because add() makes the list grow.
    if (task.variant)
      take_in_plan(task, result);
    else
      take_in_trial(task, *result.trial);
  }

  void take_in_plan(const SearchTask& task, const TaskResult& result) {
    ++table_.plans;
    table_.cut_short |= result.too_large_to_simulate;
    if (!result.candidate) return;
    const Candidate& c = *result.candidate;
    if (!c.bound.fits) {
      if (table_.too_large++ == 0 || c.bound.memory < table_.least_memory) table_.least_memory = c.bound.memory;
      return;
    }
    shortest_bound_ = std::min(shortest_bound_, c.properties.period);
    const PlanVariant& v = c.variant;
    // A single stage never waits, so no order is shorter than 1F1B's, or keeps less.
    const bool alone = c.properties.stages == 1 && !v.both_ways && has_policy("1f1b", "auto");
    for (const SchedulingPolicy& policy : policies_) {
      if (alone && policy.schedule->name != "1f1b") continue;
      const bool any_placement = policy.effort == 2 && !v.both_ways;
      if (!any_placement && placement_of(*policy.schedule) != v.placement) continue;
      if (v.both_ways && v.both_ways != policy.schedule) continue;
      if (v.chunks > 1 && !any_placement && !policy.schedule->chunks.has(v.chunks)) continue;
      const Seconds bound = policy.splits ? c.properties.period : std::max(c.properties.period, c.bound.unsplit);
      SearchTask next{.combination = {result.candidate, policy},
                      .bound = bound,
                      .memory = c.bound.memory,
                      .devices = c.properties.devices,
                      .effort = std::max(task.effort, policy.effort),
                      .tie = static_cast<std::uint64_t>(&policy - policies_.data())};
      if (policy.effort < 2)
        add(std::move(next));
      else
        orders_.push_back(std::move(next));
    }
  }

  bool has_policy(std::string_view schedule, std::string_view weights) const {
    return std::any_of(policies_.begin(), policies_.end(), [&](const SchedulingPolicy& policy) {
      return policy.schedule->name == schedule && policy.weights == weights;
    });
  }

  void take_in_trial(const SearchTask& task, const Trial& trial) {
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

  void keep(const Combination& combination, Choice c) {
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

  static void put(const Choice& c, std::vector<Choice>& front) {
    for (const Choice& other : front)
      if (covers_when_known(other, c)) return;
    std::erase_if(front, [&](const Choice& other) { return covers_when_known(c, other); });
    front.push_back(c);
  }

  /// Searches for an order on the plans that could be shorter than the best, those first on which others are shortest.
  void find_orders() {
    std::vector<std::tuple<Seconds, Seconds, int>> plans;
    for (std::size_t i = 0; i < orders_.size(); ++i) {
      const auto at = shortest_of_plan_.find(orders_[i].combination.candidate.get());
      plans.emplace_back(at == shortest_of_plan_.end() ? Seconds{kInfinity} : at->second, orders_[i].bound, i);
    }
    std::sort(plans.begin(), plans.end());
    int searched = 0;
    std::vector<int> batch;
    const auto flush = [&] {
      run_batch(batch);
      batch.clear();
    };
    for (const auto& [shortest, bound, i] : plans) {
      if (stopping() || searched >= asked_.max_orders) break;
      if (!may_be_shorter(bound)) continue;
      batch.push_back(static_cast<int>(tasks_.size()));
      tasks_.push_back(orders_[i]);
      ordered_plans_.insert(orders_[i].combination.candidate.get());
      ++searched;
      if (batch.size() == kBatchOfOrders) flush();
    }
    flush();
  }

  int count_untried() {
    int count = 0;
    for (const int number : aside_) {
      const SearchTask& task = tasks_[number];
      reasons_.add_bound(
          task.variant ? task.variant->device_types : task.combination.candidate->properties.device_types, task.bound);
      if (!may_be_shorter(task.bound)) continue;
      ++count;
      if (task.variant) shortest_bound_ = std::min(shortest_bound_, task.bound);
    }
    int orders = 0;
    for (const SearchTask& task : orders_) {
      const Candidate* plan = task.combination.candidate.get();
      if (ordered_plans_.contains(plan) || !may_be_shorter(task.bound)) continue;
      untried_orders_.insert(plan);
      ++orders;
    }
    if (orders > 0)
      reasons_.note(
          fmt::format("no order was searched for on {} that could have shorter ones", pluralize(orders, "other plan")));
    if (best_) shortest_bound_ = std::min(shortest_bound_, known_period(*best_));
    return count + orders;
  }

  /// Takes up what was set aside: of each number of devices the shortest bound first.
  void find_front() {
    if (!best_) return;
    int simulations = table_.simulated + std::min(asked_.front_simulations, asked_.max_simulations);
    std::int64_t steps = std::int64_t{kPlansOfSimulation} * asked_.front_simulations;
    std::map<int, std::set<std::tuple<Seconds, std::uint64_t, int>>> by_devices;
    const auto sort_in = [&] {
      for (TaskQueue* queue : {&plans_, &trials_}) {
        for (const auto& entry : *queue) aside_.push_back(std::get<3>(entry));
        queue->clear();
      }
      for (const int number : aside_)
        by_devices[tasks_[number].devices].emplace(tasks_[number].bound, tasks_[number].tie, number);
      aside_.clear();
    };
    sort_in();
    while (!stopping() && table_.simulated < simulations && steps > 0) {
      std::vector<int> batch;
      for (bool more = true; more && batch.size() < kBatch;) {
        more = false;
        for (auto& [devices, tasks] : by_devices) {
          while (!tasks.empty()) {
            const int number = std::get<2>(*tasks.begin());
            tasks.erase(tasks.begin());
            const SearchTask& task = tasks_[number];
            if (is_covered(task.bound, task.memory, task.devices)) {
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
      for (const auto& [bound, tie, number] : tasks)
        if (is_covered(bound, tasks_[number].memory, devices))
          ++table_.dropped_by_bound;
        else if (table_.cut_short = true; !may_be_shorter(bound))
          ++table_.untried_smaller;
    if (asked_.max_orders == std::numeric_limits<int>::max()) find_orders_on_fronts();
  }

  /// Searches for an order on the plans of the fronts of each kind of recomputation: another order may make up for the
  /// time that more recomputation costs.
  void find_orders_on_fronts() {
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

  void show() {
    SearchProgress p{.simulated = table_.simulated, .seconds = seconds(), .best = best_, .phase = phase_};
    if (p.seconds - shown_ < kBetweenProgress) return;
    shown_ = p.seconds;
    for (const TaskQueue* queue : {&plans_, &trials_})
      for (const auto& entry : *queue) p.waiting += may_be_shorter(std::get<1>(entry));
    p.rate = static_cast<double>(done_) / p.seconds;
    progress_(p);
  }

  void finish() {
    table_.bound = shortest_bound_.value < kInfinity ? shortest_bound_ : Seconds{};
    table_.cut_short |= !table_.stopped.empty();
    for (const SearchTask& task : orders_) {
      const Candidate* plan = task.combination.candidate.get();
      table_.dropped_by_bound += !ordered_plans_.contains(plan) && !untried_orders_.contains(plan);
    }
    std::stable_sort(table_.front.begin(), table_.front.end(), [](const Choice& a, const Choice& b) {
      return std::tuple(known_period(a), a.memory, a.devices, a.id) <
             std::tuple(known_period(b), b.memory, b.devices, b.id);
    });
    if (asked_.contended) {
      table_.replay.backend = kReplayBackend;
      for (const Choice& c : table_.front) count(table_.replay, c.period, c.replayed);
      order_by_replay(table_.front, table_.replay, [](const ContendedResult& r) { return r.period; });
    }
    for (Choice& c : table_.front) c.sets = runner_.sets_of(tried_[c.id]);
    for (const auto& [name, why] : refused_)
      if (!ran_.contains(name)) table_.refused.emplace_back(name, why);
    if (variants_.limited) reasons_.note("micro-batches so small that there are more than 32 for each stage");
    table_.reasons = reasons_.lines(table_);
  }

  const ChoiceOptions& asked_;
  const std::function<void(const SearchProgress&)>& progress_;
  const SteadyClock::time_point begin_ = SteadyClock::now();
  int threads_;
  std::vector<SchedulingPolicy> policies_;
  PlannedExperiment configured_;
  CombinationRunner runner_;
  SavedTrials saved_;
  ChoiceTable table_;
  PlanVariants variants_;
  std::vector<SearchTask> tasks_;
  TaskQueue plans_, trials_;
  std::vector<int> aside_;          ///< Tasks that cannot be shorter than the best.
  std::vector<SearchTask> orders_;  ///< One for each plan.
  std::set<const Candidate*> ordered_plans_, untried_orders_;
  std::map<const Candidate*, Seconds> shortest_of_plan_;
  std::vector<Combination> tried_;  ///< [Choice::id]
  std::optional<Choice> best_;
  Seconds shortest_bound_{kInfinity};
  ChoiceReasons reasons_;
  std::int64_t done_ = 0;
  double shown_ = 0;
  const char* phase_ = "";
  std::map<std::string, std::vector<Choice>> fronts_;  ///< Recomputation -> its Pareto front.
  std::set<std::string> ran_;                          ///< Schedules that could run one of the plans.
  std::map<std::string, std::string> refused_;         ///< Schedule -> why it could not run the first plan that failed.
};

}  // namespace

ChoiceTable search_choices(const Experiment& configured, const ChoiceOptions& asked,
                           const std::function<void(const SearchProgress&)>& progress) {
  if (get_from(backends::catalog(), "backend", asked.backend).clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", asked.backend),
                     "--backend ideal, or simgrid");
  return ChoiceSearch(configured, asked, progress).run();
}

}  // namespace stagecraft
