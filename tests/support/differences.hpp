#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/core/text.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft::test {

/// The first instruction whose times differ by more than `tolerance` of themselves, or nothing.
inline std::string difference(const Program& program, const Timeline& a, const Timeline& b, double tolerance = 1e-9) {
  const auto same = [&](double x, double y) {
    return std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
  };
  for (const InstructionId i : program.instructions.ids())
    if (!same(a.start[i], b.start[i]) || !same(a.end[i], b.end[i]))
      return to_text(program, i) + ": " + shortest(a.start[i]) + " to " + shortest(a.end[i]) + " against " +
             shortest(b.start[i]) + " to " + shortest(b.end[i]);
  return {};
}

}  // namespace stagecraft::test
