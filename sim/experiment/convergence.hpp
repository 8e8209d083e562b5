#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/output/convergence.hpp"

// Trains with several methods and seeds, for `stagecraft convergence`; sim/output/convergence has the result as text
// and pictures.

namespace stagecraft {

/// One way to train what an experiment asks for: "sync", a weights policy, "pipeoptim:as_released", "stash@4" (four
/// micro-batches per update; without a number sync and 2bw take as many as the experiment, others one). All methods
/// have the same number of samples per update.
struct Method {
  std::string name;
  ScheduleSpec schedule;
  WeightsSpec weights;
  int micro_batches = 1, micro_batch_size = 1;
};
Method parse_method(const std::string& word, const Experiment&);

struct ConvergenceOptions {
  std::vector<std::string> methods;
  std::string backend = "cpu", simulator = "ideal";
  int updates = 600, evaluate_every = 20, seeds = 5;
  bool measure = true;  ///< Whether to measure the time of an update on threads too.
};

/// Trains with every method and seed, on one thread and in the order of the program, so that the result is the same
/// everywhere. `before_each` is called before each training. Where a StopScope ends it, the result has the runs that
/// are complete; before the first of them, Stopped goes on.
Convergence converge(
    const Experiment&, const ConvergenceOptions&, const std::function<void()>& before_each = [] {});

}  // namespace stagecraft
