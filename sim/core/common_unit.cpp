// Finds a unit of which given times are whole multiples, if there is one, and writes times in it, so that equal sums
// compare equal; schedule searches and planners use it.

#include "sim/core/common_unit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stagecraft {
namespace {

constexpr double kSteps = 0x1p40;

}  // namespace

double common_measure(const std::vector<double>& parts) {
  constexpr double kSame = 1e-12, kSmall = 1e-3;
  if (parts.empty()) return 0;
  const double largest = *std::max_element(parts.begin(), parts.end());
  double measure = 0;
  for (double part : parts)
    while (part > kSame * largest) {
      const double rest = std::fmod(measure, part);
      measure = std::exchange(part, part - rest <= kSame * largest ? 0 : rest);
    }
  return measure >= kSmall * largest ? measure : 0;
}

CommonUnit::CommonUnit(const std::vector<double>& times) {
  const double longest = times.empty() ? 0 : *std::max_element(times.begin(), times.end());
  if (longest <= 0) return;
  const double measure = common_measure(times);
  unit_ = measure > 0 ? longest / std::round(longest / measure) : longest;
}

double CommonUnit::operator()(double time) const {
  return std::isfinite(time) ? std::round(time / unit_ * kSteps) / kSteps : time;
}

double CommonUnit::rate(double bytes_per_second) const {
  if (!std::isfinite(bytes_per_second)) return bytes_per_second;
  int exponent = 0;
  const double mantissa = std::frexp(bytes_per_second * unit_, &exponent);
  return std::ldexp(std::round(mantissa * kSteps) / kSteps, exponent);
}

}  // namespace stagecraft
