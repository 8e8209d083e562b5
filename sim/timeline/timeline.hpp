#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

enum class Clock : std::uint8_t { Simulated, Host, Device };

/// Where numbers come from; printed with everything people may quote.
struct Provenance {
  std::string backend, backend_version;  ///< "simgrid", "3.32".
  std::string stagecraft_version;
  std::string machine;        ///< Empty for simulated clocks: the answer does not depend on it.
  std::string scenario_hash;  ///< SHA-256 of the resolved scenario.
  std::uint64_t seed = 0;
};

/// What happened: start and end of every instruction of a Program, by its number.
///
/// Seconds are doubles, not integer nanoseconds: two simulators are compared to 1e-9 of runs that last
/// milliseconds, which a nanosecond cannot show.
struct Timeline {
  Clock clock = Clock::Simulated;
  std::vector<double> start, end;
  Provenance provenance;

  Seconds start_of(InstructionId i) const { return {start[static_cast<std::size_t>(i)]}; }
  Seconds end_of(InstructionId i) const { return {end[static_cast<std::size_t>(i)]}; }
  Seconds last_end() const;
};

}  // namespace stagecraft
