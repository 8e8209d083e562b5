// ln x and exp x with the same bits on every machine.

#include "sim/core/elementary.hpp"

#include <cmath>
#include <numbers>

// A processor with fused products has other bits where the compiler uses them.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

namespace stagecraft {
namespace {

// ln 2 in two parts, the first of 32 bits: a whole number of less than 20 bits times it is exact.
constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;

}  // namespace

// x = m 2^e with m from sqrt(1/2) to sqrt(2), and ln m = 2 artanh((m - 1) / (m + 1)).
double logarithm(double x) {
  if (!(x > 0) || !std::isfinite(x)) return std::log(x);
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < 1 / std::numbers::sqrt2) m *= 2, --e;
  const double t = (m - 1) / (m + 1), square = t * t;
  double sum = 0;
  for (int power = 21; power > 1; power -= 2) sum = (sum + 1.0 / power) * square;
  return e * kLn2High + (e * kLn2Low + (2 * t + 2 * t * sum));
}

// x = k ln 2 + r with |r| of at most ln 2 / 2, and the series of exp r.
double exponential(double x) {
  constexpr double kLargest = 700;
  if (!(std::abs(x) < kLargest)) return std::exp(x);
  const double k = std::nearbyint(x / std::numbers::ln2), r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 0;
  for (int n = 14; n > 1; --n) sum = (sum + 1) * r / n;
  return std::ldexp(1 + (r + r * sum), static_cast<int>(k));
}

}  // namespace stagecraft
