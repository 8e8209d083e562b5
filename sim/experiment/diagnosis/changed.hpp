#pragma once

#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/experiment/scenario_variants.hpp"
#include "sim/report/diagnosis.hpp"

namespace stagecraft {

/// Simulates suggestions: exactly what a user gets who pastes their options.
class ChangedRuns {
 public:
  /// `limit`: most suggestions that are simulated; 0: none.
  ChangedRuns(ScenarioReader read, std::string backend, Seconds period, int samples, int limit);

  /// Simulates the suggestions of a finding, drops those that cannot run or do not fit, and puts those that save most
  /// first. Beyond the limit they stay as they are.
  void simulate(Finding&);
  /// The run with these options; nothing where it cannot run, does not fit, or is beyond the limit.
  std::optional<ChangedRun> run(const std::vector<std::string>& sets);
  bool may_simulate() const { return limit_ > 0; }

 private:
  ScenarioReader read_;
  std::string backend_;
  Seconds period_;
  int samples_;
  int limit_;
};

}  // namespace stagecraft
