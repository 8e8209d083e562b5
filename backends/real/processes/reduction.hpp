#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/real/processes/wire.hpp"

namespace stagecraft::real {

/// Combines numbers of all processes, one round after another: each sends its own to the first, which answers with the
/// result.
class Reduction {
 public:
  using Numbers = std::array<std::uint64_t, 4>;
  using Combine = std::uint64_t (*)(std::uint64_t, std::uint64_t);
  Reduction(WordKind kind, Combine combine) : kind_(kind), combine_(combine) {}

  /// Gives the others the numbers of this process, unless it has done so in this round; returns the result once all
  /// have given theirs. BackendError where a process is lost, in all processes.
  std::optional<Numbers> reduce(const Numbers& local);

 private:
  std::optional<Numbers> collect();
  std::optional<Numbers> ask();

  WordKind kind_;
  Combine combine_;
  bool under_way_ = false;
  Numbers result_{};
  std::vector<bool> heard_;  ///< By process; on the first.
};

std::optional<Transport::Pulse> reduce_pulse(Reduction&, const Transport::Pulse& local);
Reduction pulse_reduction();  ///< Sums pulses.

}  // namespace stagecraft::real
