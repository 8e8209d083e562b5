#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/report/convergence.hpp"
#include "sim/run/run.hpp"

namespace stagecraft {

/// One way to train what a scenario asks for: "sync", a weights policy, "pipeoptim:as_released", "stash@4" (four
/// micro-batches for each update; sync and 2bw take those of the scenario, others one). The samples of an update are
/// the same for all.
struct Method {
  std::string name;
  std::vector<std::string> sets;  ///< path=value, what it changes in the scenario.
};
Method parse_method(const std::string& word, const Scenario&);

struct ConvergenceOptions {
  std::string file;  ///< Scenario, and what --set says of it.
  std::vector<std::string> sets;
  std::vector<std::string> methods;
  std::string backend = "cpu", simulator = "ideal";
  int updates = 600, evaluate_every = 20, seeds = 5;
  bool measure = true;  ///< Also the time of an update on threads.
};

/// Trains with every method and seed, on one thread and in the order of the program, so that the result is the same
/// everywhere; `progress` hears of each run.
Convergence converge(const ConvergenceOptions&, const std::function<void(const std::string&)>& progress);

}  // namespace stagecraft
