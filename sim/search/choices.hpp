#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/experiment/experiment.hpp"
#include "sim/report/choice_table.hpp"

namespace stagecraft {

struct ChoiceOptions {
  std::vector<std::string> schedules = {};  ///< Empty: the usual ones.
  std::vector<std::string> weights = {};    ///< Policies; empty: each schedule brings its own.
  std::string backend = "ideal";            ///< A backend that simulates.
  int max_simulations = 2000;               ///< Simulations.
  int replay = 0;                           ///< Rows that are simulated again on `fluid`.
};

/// How to train the model of an experiment on its cluster with as many samples in an iteration: stages, replicas,
/// placement, schedule, micro-batch size, recomputation and weights are tried together, on the plans of candidates.hpp.
/// Each combination that could still be better in time, memory or devices is simulated, shortest bound first; then an
/// order is searched for on the plans of the front, and the first rows are simulated again where messages share links.
/// Without policies or schedules that say otherwise weights are never stale. Deterministic.
ChoiceTable search_choices(const Experiment&, const ChoiceOptions&,
                           const std::function<void(const std::string&)>& progress);

}  // namespace stagecraft
