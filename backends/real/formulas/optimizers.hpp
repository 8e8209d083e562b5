#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backends/real/formulas/elementary.hpp"
#include "backends/real/kernels.hpp"
#include "sim/core/diagnostic.hpp"

/// What updates and predictions share. A step makes the number at place i from the numbers at the same place alone, so
/// that no result depends on where a number lies or on who computes its neighbors.
namespace stagecraft::real {

template <class T>
T* state_numbers(void* state) {
  STAGECRAFT_CHECK(state);
  return static_cast<T*>(state);
}

inline double geometric_sum(double ratio, int first, int terms) {
  double sum = 0;
  for (int j = 0; j < terms; ++j) sum += std::pow(ratio, first + j);
  return sum;
}

/// Adam's corrections after t steps, powers by std::pow: steps are m * of_first / (sqrt(v * of_second) + epsilon).
template <class T>
struct Corrections {
  Corrections(const OptimizerRule& rule, double rate, int t)
      : of_first(static_cast<T>(rate / (1 - std::pow(rule.beta1, t)))),
        of_second(static_cast<T>(1 / (1 - std::pow(rule.beta2, t)))),
        epsilon(static_cast<T>(rule.epsilon)) {}
  STAGECRAFT_PORTABLE T step(T m, T v) const { return of_first * m / (std::sqrt(v * of_second) + epsilon); }

  T of_first, of_second, epsilon;
};

/// How the integer optimizer moves a weight, `times` over.
template <class T>
STAGECRAFT_PORTABLE T integer_weight(T w, T momentum, T times) {
  return std::min(std::max(w - times * std::floor(momentum / 2048 + T(0.5)), T(-2)), T(2));
}

}  // namespace stagecraft::real
