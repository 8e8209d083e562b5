#pragma once

#include <cstdint>
#include <vector>

#include "backends/real/formulas/optimizers.hpp"

/// The number of Adam steps done, in device memory, so that a graph of an update is right each time that it is
/// launched. Layout, in numbers of the kernels' type: the steps; at kOne a 1, which is added after each step; from
/// kTable on the two corrections of each step, which the host computes as for the CPU.
namespace stagecraft::cuda::counter {

constexpr std::int64_t kOne = 16, kTable = 32;  // At multiples of 64 bytes.

/// Initial contents for up to `steps` steps.
inline std::vector<double> numbers(const OptimizerRule& rule, int steps) {
  std::vector<double> table(kTable + 2 * std::int64_t{steps}, 0);
  table[kOne] = 1;
  for (int step = 0; step < steps; ++step) {
    const real::Corrections<double> corrections(rule, rule.learning_rate, step + 1);
    const auto at = static_cast<std::size_t>(kTable + 2 * std::int64_t{step});
    table[at] = corrections.of_first;
    table[at + 1] = corrections.of_second;
  }
  return table;
}

}  // namespace stagecraft::cuda::counter
