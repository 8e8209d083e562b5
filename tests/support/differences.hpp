#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/core/text.hpp"
#include "sim/program/program.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft::test {

/// The first instruction whose times differ by more than `tolerance` of themselves, or nothing.
inline std::string difference(const Program& program, const Timeline& a, const Timeline& b, double tolerance = 1e-9) {
  const auto same = [&](double x, double y) {
    return std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
  };
  for (std::size_t i = 0; i < program.size(); ++i)
    if (!same(a.start[i], b.start[i]) || !same(a.end[i], b.end[i]))
      return to_text(program, InstructionId{static_cast<std::int64_t>(i)}) + ": " + shortest(a.start[i]) + " to " +
             shortest(a.end[i]) + " against " + shortest(b.start[i]) + " to " + shortest(b.end[i]);
  return {};
}

}  // namespace stagecraft::test
