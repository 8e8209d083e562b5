#pragma once

#include <cstdint>

#include "backends/real/formulas/elementary.hpp"

/// Loops that the compiler vectorizes without a choice about the result: a number never depends on where it lies, a sum
/// only on how many numbers it has.
namespace stagecraft::cpu {

/// to[i] = value(i), or to[i] += value(i).
template <class T, class Value>
void put(bool add, std::int64_t count, T* to, Value&& value) {
  if (add)
    for (std::int64_t i = 0; i < count; ++i) to[i] += value(i);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = value(i);
}

/// Number i goes to lane i mod `kLanes`; the lanes are joined by halves.
template <class T, class Value, class Join>
T joined(std::int64_t count, T start, Value&& value, Join&& join) {
  constexpr std::int64_t kLanes = 128 / sizeof(T);
  T lanes[kLanes];
  for (T& lane : lanes) lane = start;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = join(lanes[lane], value(i + lane));
  for (std::int64_t lane = 0; i + lane < count; ++lane) lanes[lane] = join(lanes[lane], value(i + lane));
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
    for (std::int64_t lane = 0; lane < half; ++lane) lanes[lane] = join(lanes[lane], lanes[lane + half]);
  return lanes[0];
}

template <class T, class Value>
T sum(std::int64_t count, Value&& value) {
  return joined(count, T{0}, value, [](T a, T b) { return a + b; });
}

}  // namespace stagecraft::cpu

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
