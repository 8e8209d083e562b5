#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/experiment/scenario_variants.hpp"
#include "sim/result/diagnosis.hpp"

namespace stagecraft {

/// Simulates suggestions: exactly what a user gets who pastes their options.
class ChangedRuns {
 public:
  /// `limit`: most suggestions that are simulated; 0: none. `most_instructions`: most that their programs have
  /// together.
  ChangedRuns(ScenarioReader read, std::string backend, Seconds period, int samples, int limit,
              std::size_t most_instructions = SIZE_MAX);

  /// Simulates the suggestions of a finding and puts those that save most first. Those that cannot run or do not fit
  /// become refusals of the finding. Beyond the limit they stay as they are.
  void simulate(Finding&);
  /// Simulates the suggestion where the limit allows; where it cannot run or does not fit, returns why not.
  std::string simulate(Suggestion&);
  /// Whether a suggestion was not simulated because its program is larger than what is left of the limit.
  bool is_exhausted() const { return exhausted_; }

 private:
  ScenarioReader read_;
  std::string backend_;
  Seconds period_;
  int samples_;
  int limit_;
  std::size_t instructions_left_;
  bool exhausted_ = false;
};

}  // namespace stagecraft
