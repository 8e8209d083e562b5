#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace stagecraft {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The value at `share` (0 to 1) of the sorted numbers, interpolated linearly between neighbors; 0 if there are none.
/// Infinite numbers are allowed: a share that falls on a number returns it, whatever its neighbors are.
inline double quantile(std::vector<double> numbers, double share) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  const double position = share * static_cast<double>(numbers.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const double fraction = position - static_cast<double>(low);
  return fraction == 0 || numbers[low] == numbers[low + 1] ? numbers[low]
                                                           : std::lerp(numbers[low], numbers[low + 1], fraction);
}

inline double median(std::vector<double> numbers) { return quantile(std::move(numbers), 0.5); }

}  // namespace stagecraft
