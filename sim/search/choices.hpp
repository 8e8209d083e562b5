#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/experiment/own_orders.hpp"
#include "sim/output/choice_table.hpp"

// The search of `stagecraft search` over plans, devices, schedules and weights: its options and its result.

namespace stagecraft {

/// The objective of one of objective_names(). InputError for another name.
Objective objective_from(const std::string& name);

struct ChoiceOptions {
  std::vector<std::string> schedules = {};      ///< Without these and the next: the usual ones.
  std::vector<OwnSchedule> own_schedules = {};  ///< Rows and Choice::sets have their names, in place of orders.
  std::vector<std::string> weights = {};        ///< Policies; empty: the scenario's, or what each schedule brings.
  std::vector<std::string> pack_fields = {};    ///< Fields of `data` that are chosen too: room, pack, order.
  Objective objective = Objective::Time;
  std::string backend = "ideal";  ///< A backend that simulates.
  int max_simulations = 20000;
  double margin = 0.06;    ///< Share of each device's memory that the first row leaves free, if any plan does.
  bool contended = false;  ///< Simulates on `fluid` too, and ranks by that.
  /// Simulations after the shortest period is known, for choices that need less memory or fewer devices.
  int front_simulations = std::numeric_limits<int>::max();
  /// The search for the first row ends after `patience` simulations without a better one, but not before
  /// `patience_of_schedule` for each schedule, since all run on each plan: among usual plans, and again among plans
  /// that seldom win.
  int patience = std::numeric_limits<int>::max(), patience_of_schedule = 0;
  /// It also ends after simulations of this number of ops, because simulations of large plans take long. Choices that
  /// need less memory may take as many, and searches for orders five times as many.
  double patience_ops = std::numeric_limits<double>::infinity();
  int max_orders = std::numeric_limits<int>::max();  ///< Plans for which an order is searched for.
  int threads = 1;                                   ///< 0: one for each core. The answer is the same with any number.
  std::uint64_t seed = 1;                            ///< Shuffles choices with equal bounds.
  std::optional<Seconds> time = {};                  ///< The search stops after this time.
  std::string resume = {};                           ///< File for the state of the search; empty: none.
  std::function<bool()> stop = [] { return false; };
  /// Evaluates tasks of this question outside of this process, with a task_evaluator(); empty: here. A result that is
  /// empty was stopped.
  std::function<std::vector<std::string>(const std::string& question, const std::vector<std::string>& tasks)>
      elsewhere = {};
};

/// How far a search is.
struct SearchProgress {
  int simulated = 0, waiting = 0;  ///< `waiting`: those that could still be better.
  double rate = 0;                 ///< Simulations and plans of a second.
  double seconds = 0;
  std::optional<Choice> best;
  ObjectiveUnit unit;
  const char* phase = "";
};

/// How to train the model of an experiment on its cluster with as many samples in an iteration: stages, replicas,
/// devices, placement, schedule, micro-batch size, recomputation and weights are tried together. Best first: what
/// waits is sorted by a lower bound on its period, or on its cost or energy where these are the objective, first
/// without and then with the plan. What cannot be better than the best so far is set aside. When nothing waits, the
/// best is known; then choices that need less memory or fewer devices, or take less time, are taken up again.
/// Deterministic, whatever the number of threads, unless time ends the search. The processes of a joined world share
/// the search; only the first has the answer. The weights policy of the scenario stays in every choice, unless
/// `ChoiceOptions::weights` has others; where it has none, weights are stale only with schedules that are named.
ChoiceTable search_choices(const Experiment&, const ChoiceOptions&,
                           const std::function<void(const SearchProgress&)>& progress);

/// Evaluates tasks of a search in another process, in the time that is left. Threads may share one.
using TaskEvaluator = std::function<std::string(const std::string& task, std::optional<Seconds> left)>;
/// InputError unless the options and the experiment are the ones of the question.
TaskEvaluator task_evaluator(const std::string& question, const Experiment&, const ChoiceOptions&);

}  // namespace stagecraft
