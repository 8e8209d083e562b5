#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// One number of an outcome: a column of sweeps, and what published values are compared with.
struct Metric {
  const char* name;
  const char* unit;                                               ///< Empty for counts and shares.
  const char* meaning;                                            ///< One sentence.
  bool whole;                                                     ///< A count, or yes and no as 1 and 0.
  double (*value_of)(const CompiledExperiment&, const Outcome&);  ///< NaN: not known.
};
std::span<const Metric> metrics();
std::size_t metric(std::string_view name);  ///< Its index in metrics().

}  // namespace stagecraft
