#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/v_repeat.hpp"

namespace stagecraft {

/// The patterns of all ranks from that of the first: F0 and I1 stand `first` steps later on each of the next `turn`
/// ranks, `second` steps on each behind them; F1 and I0 one step earlier, all modulo six.
struct VSlope {
  VPattern top;
  int first = 1, second = 1, turn = 1;
};

/// Every first row, those of the forward of chunk 1 first.
std::vector<VPattern> v_tops();

/// The most steps that a slope takes for a rank.
constexpr int kSteepest = 5;

/// Nothing where two passes share a step.
std::optional<std::vector<VPattern>> patterns_of(const VSlope&, int ranks);

/// Whether there are patterns. O(1).
bool passes_apart(const VSlope&, int ranks);

}  // namespace stagecraft
