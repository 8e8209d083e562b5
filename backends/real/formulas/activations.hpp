#pragma once

#include "backends/real/formulas/elementary.hpp"

/// `slope` is a function of the number that the operation keeps: its output, or its input.
namespace stagecraft::real {

template <class T>
struct Relu {
  static constexpr bool keeps_output = true;
  STAGECRAFT_PORTABLE static T value(T x) { return x < 0 ? T{0} : x; }  // What is not a number stays so, to be seen.
  STAGECRAFT_PORTABLE static T slope(T y) { return y > 0 ? T{1} : T{0}; }
};

template <class T>
struct Tanh {
  static constexpr bool keeps_output = true;
  STAGECRAFT_PORTABLE static T value(T x) { return hyperbolic_tangent(x); }
  STAGECRAFT_PORTABLE static T slope(T y) { return 1 - y * y; }
};

/// x s(z), s the logistic function and z = 2 sqrt(2/pi) (x + 0.044715 x^3): what Operation.hpp says, without a
/// difference of nearly equal numbers.
template <class T>
struct Gelu {
  static constexpr bool keeps_output = false;
  static constexpr T kOne = static_cast<T>(1.5957691216057308), kThree = static_cast<T>(1.5957691216057308 * 0.044715);

  STAGECRAFT_PORTABLE static T share(T x) { return logistic(x * (kOne + kThree * (x * x))); }
  STAGECRAFT_PORTABLE static T value(T x) { return x * share(x); }
  STAGECRAFT_PORTABLE static T slope(T x) {
    const T s = share(x);
    return s + s * (1 - s) * (x * (kOne + 3 * kThree * (x * x)));
  }
};

}  // namespace stagecraft::real
