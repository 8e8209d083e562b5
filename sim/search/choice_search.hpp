#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/farm/job_farm.hpp"
#include "sim/search/choice_reasons.hpp"
#include "sim/search/choices.hpp"
#include "sim/search/evaluation.hpp"
#include "sim/search/saved_trials.hpp"
#include "sim/search/search_tasks.hpp"

// The state of a search: tasks that wait, trials that are done, and what decides between them. choice_phases.cpp has
// the phases.

namespace stagecraft {

struct TaskResult {
  bool done = false, too_large_to_simulate = false;
  std::shared_ptr<const Candidate> candidate = {};
  std::optional<Trial> trial = {};
};

/// Why a search that began then has to end: by a signal or by its time. Empty where neither ends it.
std::string reason_to_stop(const ChoiceOptions&, std::chrono::steady_clock::time_point begin);

/// A guess of the relative time that a task takes: the ops of a simulation; for a plan, the devices.
double work_of(const SearchTask&);

/// The state of search_choices(). Its batches are in choice_search.cpp, and its phases in choice_phases.cpp.
class ChoiceSearch {
 public:
  ChoiceSearch(const Experiment& configured, const ChoiceOptions&,
               const std::function<void(const SearchProgress&)>& progress);

  ChoiceTable run();

  /// Makes ready for evaluate_described(), in place of run().
  void list_plans();
  /// The result of a task that another process describes, as text.
  std::string evaluate_described(const std::string& description);

 private:
  using SteadyClock = std::chrono::steady_clock;
  static constexpr double kLess = 1 - 1e-9;
  static constexpr const char* kMost = "--most";
  /// Added to the number of a task in the number of the job that simulates it with contention: an answer to the first
  /// job that comes late is none to the second.
  static constexpr int kReplayJob = 1 << 30;
  static int task_of(int job) { return job & ~kReplayJob; }

  void search();
  /// On another process than the first: evaluates tasks until the first one ends the search.
  ChoiceTable follow();
  void own_period();
  /// Simulates published configurations of the same model and chip, with which the front begins.
  void run_published();
  /// Keeps the policies that can run, and why the others cannot.
  void drop_refused_policies();
  /// A batch has plans and simulations: plans alone would never end before the first simulation, because their bounds
  /// are lower, and without a first result nothing can be set aside.
  void find_shortest();
  /// Adds simulations of plans that need the least memory to a batch.
  void take_smallest(std::vector<int>& batch);
  bool is_out_of_patience() const;
  void set_all_aside();
  /// Searches for an order on the plans that could be shorter than the best, those first on which others are shortest.
  void find_orders();
  /// Searches for the orders of this batch that use the margin of memory, within it. Where nothing leaves it free, the
  /// first row is tight.
  std::vector<int> tight_orders_again(const std::vector<int>& batch);
  int count_untried();
  /// Takes up what was set aside: of each number of devices the shortest bound first.
  void find_front();
  /// Searches for an order on the plans of the fronts of each kind of recomputation: another order may make up for the
  /// time that more recomputation costs.
  void find_orders_on_fronts();
  /// Swaps unlike devices in the plans of the first rows (device_swaps.cpp).
  void swap_devices();
  void swap_devices_of(const Choice& row, double max_ops);
  /// Simulates a combination with its plan on other devices, and makes it that combination. Nothing where it does not
  /// run, or cannot be better than this amount.
  std::optional<Trial> trial_on(std::vector<DeviceId> devices, double amount, Combination&);
  void add(SearchTask task);
  bool is_covered(const SearchTask& task) const;
  bool is_covered(const Choice& c) const;
  bool stopping();
  /// Fills the batch up to `size` tasks. Tasks of more effort wait until what this batch finds is known.
  void take(TaskQueue& queue, double effort, std::size_t size, std::vector<int>& batch);
  std::vector<int> within_limit(const std::vector<int>& batch);
  void run_batch(const std::vector<int>& asked_batch);
  /// Fills `results_` with the results of a batch; a task that has to stop stays undone.
  void evaluate(std::vector<int> batch);
  /// Evaluates on the workers of all processes.
  void distribute(const std::vector<int>& jobs);
  /// Simulates with contention what is worth it after each few of them, the shortest first, and takes all in. Results
  /// of a saved search take their places in this order, so that a resumed search decides as the first one did.
  void replay(std::vector<int> trials);
  bool waits_for_replay(const TaskResult&) const;
  /// What another process has to know to do a job.
  std::string description_of(int job) const;
  TaskResult result_of(int job) const;
  /// The result of a task in the file of the search, if that says enough.
  std::optional<Trial> saved_trial(const SearchTask& task) const;
  void take_in(int number, const TaskResult& result);
  void take_in_plan(const SearchTask& task, const TaskResult& result);
  /// Counts a plan that needs more memory than a device has, whatever the order of work.
  void leave_out_large(Bytes memory);
  void take_in_trial(const SearchTask& task, const Trial& trial);
  void keep(const Combination& combination, Choice c);
  static void put(const Choice& c, std::vector<Choice>& front);
  /// Whether a task with such lower bounds may still give the first row. Until a choice leaves the margin of memory
  /// free, each that may do so can, and the others where they are better than the best so far.
  bool may_be_better(double amount, Bytes memory = {}) const {
    const bool is_tight = memory > (1 - asked_.margin) * largest_capacity_;
    if (is_tight && best_) return false;
    const std::optional<Choice>& best = is_tight ? best_tight_ : best_;
    return !best || amount < best->amount * kLess;
  }
  /// Whether a task cannot leave the margin free, but could be better than the best that does.
  bool may_be_tight_and_better(const SearchTask& task) const {
    return best_ && !may_be_better(task.amount, task.memory) && may_be_better(task.amount);
  }
  /// Takes a choice as the best so far, of those that leave the margin free or of the others, where it is.
  void take_best(const Choice&);
  /// Whether a simulation without contention is worth one with it.
  bool is_worth(const Choice& c) const;
  /// Empty while neither a signal nor the time ends the search.
  std::string reason_to_stop() const { return stagecraft::reason_to_stop(asked_, begin_); }
  /// The search ends before all is done that its options allow.
  bool ends_early() const { return !table_.stopped.empty() && table_.stopped != kMost; }
  double seconds() const { return std::chrono::duration<double>(SteadyClock::now() - begin_).count(); }
  void begin_phase(const char*);
  void show();
  void finish();

  const ChoiceOptions asked_;
  const std::function<void(const SearchProgress&)> progress_;
  const SteadyClock::time_point begin_ = SteadyClock::now();
  std::vector<SchedulingPolicy> policies_;
  PlannedExperiment configured_;
  SearchObjective objective_;
  FrameworkLimits limits_;
  CombinationRunner runner_;
  SavedTrials saved_;
  ChoiceTable table_;
  PlanVariants variants_;
  std::vector<SearchTask> tasks_;
  TaskQueue plans_, trials_;
  std::vector<int> aside_;          ///< Tasks that cannot be better than the best.
  std::vector<SearchTask> large_;   ///< Plans with too many instructions to simulate.
  std::vector<SearchTask> orders_;  ///< One for each plan.
  std::set<const Candidate*> ordered_plans_, untried_orders_;
  std::map<const Candidate*, double> best_of_plan_;  ///< Its smallest amount.
  std::map<int, TaskResult> results_;                ///< Task of a batch -> its result.
  std::map<const Candidate*, int> kept_by_;  ///< The process that made the plan, of several that share the search.
  std::vector<Combination> tried_;           ///< [Choice::id]
  std::optional<Choice> best_;               ///< The best that leaves the margin of memory free.
  std::optional<Choice> best_tight_;         ///< The best of the other choices.
  Bytes largest_capacity_{kInfinity};
  double least_bound_ = kInfinity;  ///< No plan has a smaller amount.
  ChoiceReasons reasons_;
  int improved_at_ = 0;           ///< Simulations that were done when the best became much better last.
  double ops_ = 0;                ///< Ops of all simulations, about.
  double improved_at_ops_ = 0;    ///< `ops_` when the best became much better last.
  int swaps_ = 0;                 ///< Pairs of devices that were swapped in plans of the first rows.
  double swapped_ops_ = 0;        ///< Ops of their simulations, about.
  bool swaps_end_early_ = false;  ///< Others were not tried.
  std::int64_t done_ = 0;
  double shown_ = 0;
  const char* phase_ = "";
  std::map<std::string, std::vector<Choice>> fronts_;  ///< Recomputation -> its Pareto front.
  std::set<std::string> ran_;                          ///< Schedules that could run one of the plans.
  std::map<std::string, std::string> refused_;         ///< Schedule -> why it could not run the first plan that failed.
  std::vector<std::string> without_weights_;           ///< Schedules that do not go with the scenario's weights policy.
  std::map<int, std::shared_ptr<const Candidate>>
      variant_plans_;  ///< On another process: PlanVariant::number -> its plan.
  std::mutex mutex_;   ///< Guards `variant_plans_`.
  JobFarm farm_;
};

}  // namespace stagecraft
