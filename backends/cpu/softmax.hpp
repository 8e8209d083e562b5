#pragma once

#include "backends/cpu/loops.hpp"
#include "backends/real/formulas/elementary.hpp"

namespace stagecraft::cpu {

/// softmax(factor x) is exponentials / sum, and its logarithm factor x - largest - log(sum).
template <class T>
struct SoftmaxParts {
  T largest, sum;
};

/// Writes exp(factor x - largest). `to` may be `x`.
template <class T>
SoftmaxParts<T> softmax_exponentials(std::int64_t count, const T* x, T factor, T* to) {
  const T largest = joined(
      count, -std::numeric_limits<T>::infinity(), [=](std::int64_t i) { return factor * x[i]; },
      [](T a, T b) { return a < b ? b : a; });
  put(false, count, to, [=](std::int64_t i) { return real::exponential(factor * x[i] - largest); });
  return {largest, sum<T>(count, [to](std::int64_t i) { return to[i]; })};
}

}  // namespace stagecraft::cpu
