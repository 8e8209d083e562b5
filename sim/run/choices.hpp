#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/report/choice_table.hpp"
#include "sim/run/scenario.hpp"

namespace stagecraft {

struct ChoiceOptions {
  std::string file;  ///< Scenario, and what --set says of it.
  std::vector<std::string> sets = {};
  std::vector<std::string> schedules = {};  ///< Empty: the usual ones.
  std::vector<std::string> weights = {};    ///< Policies; empty: those that the schedules go with.
  std::string backend = "ideal";            ///< One that simulates.
  int most = 2000;                          ///< Simulations.
  int replay = 0;                           ///< Rows to be played again on `fluid`.
};

/// How to train the scenario's model on its cluster with as many samples in an iteration: stages, replicas, placement,
/// schedule, micro-batch size, recomputation and weights are tried together, on the plans of candidates.hpp. Each that
/// could still be better in time, memory or devices is simulated, shortest bound first; then an order is searched for
/// on the plans of the front, and the first rows are played again where messages share links. Without policies or
/// schedules that say otherwise weights are never stale. Deterministic.
ChoiceTable search_choices(const ChoiceOptions&, const std::function<void(const std::string&)>& progress);

}  // namespace stagecraft
