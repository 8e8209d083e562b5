#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

/// Before a function that kernels on GPUs call too: plain arithmetic that keeps no state.
#ifdef __CUDACC__
#define STAGECRAFT_PORTABLE __host__ __device__
#else
#define STAGECRAFT_PORTABLE
#endif

/// Elementary functions as plain arithmetic: loops of them are vectorized (when all is inlined), with the same bits in
/// every lane. exp is reduced to r = x - k ln 2, |r| <= ln 2 / 2, with ln 2 in two parts (W. J. Cody and W. Waite,
/// Software Manual for the Elementary Functions, 1980); the parts come from fdlibm's e_exp.c and e_expf.c.
namespace stagecraft::real {

template <class T>
struct ExponentConstants;

template <>
struct ExponentConstants<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
  static constexpr double to_whole = 0x1.8p52;  ///< Added and subtracted: rounds to a whole number.
  static constexpr double lowest = -708, highest = 709;
};

template <>
struct ExponentConstants<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float ln2_high = 0x1.62e3p-1F, ln2_low = 0x1.2fefa2p-17F;
  static constexpr float to_whole = 0x1.8p23F;
  static constexpr float lowest = -87, highest = 88;
};

/// Coefficients from the highest power down.
template <class T, class... More>
[[gnu::always_inline]] STAGECRAFT_PORTABLE inline T polynomial(T x, double highest, More... more) {
  T value = static_cast<T>(highest);
  ((value = value * x + static_cast<T>(more)), ...);
  return value;
}

/// exp(r) - 1 = r + r^2 (1/2! + r/3! + ...): the first term left out is below a quarter of the last bit.
[[gnu::always_inline]] STAGECRAFT_PORTABLE inline double small_exponential_minus_one(double r) {
  return r + r * r *
                 polynomial(r, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                            1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2);
}
[[gnu::always_inline]] STAGECRAFT_PORTABLE inline float small_exponential_minus_one(float r) {
  return r + r * r * polynomial(r, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2);
}

/// exp(x) = power (1 + rest), where power is one of two.
template <class T>
struct SplitExponential {
  T power, rest;
};

template <class T>
[[gnu::always_inline]] STAGECRAFT_PORTABLE inline SplitExponential<T> split_exponential(T x) {
  using C = ExponentConstants<T>;
  using Bits = typename C::Bits;
  const T shifted = x * static_cast<T>(1.4426950408889634) + C::to_whole;  // Its last bits are k.
  const T k = shifted - C::to_whole;
  const T r = (x - k * C::ln2_high) - k * C::ln2_low;
  const Bits power = (std::bit_cast<Bits>(shifted) + Bits{C::bias}) << C::mantissa;
  return {std::bit_cast<T>(power), small_exponential_minus_one(r)};
}

/// Within 1.1 units in the last place; 0 where the result would lose bits, infinity close to the largest number.
template <class T>
[[gnu::always_inline]] STAGECRAFT_PORTABLE inline T exponential(T x) {
  using C = ExponentConstants<T>;
  const SplitExponential<T> e = split_exponential(x);
  const T result = e.power * (1 + e.rest);
  return x < C::lowest ? T{0} : x > C::highest ? std::numeric_limits<T>::infinity() : result;
}

/// 1 / (1 + exp(-x)) = (1 + tanh(x / 2)) / 2.
template <class T>
[[gnu::always_inline]] STAGECRAFT_PORTABLE inline T logistic(T x) {
  return 1 / (1 + exponential(-x));
}

/// t / (t + 2) with t = exp(2 |x|) - 1; beyond 20 it is 1 in every number type.
template <class T>
[[gnu::always_inline]] STAGECRAFT_PORTABLE inline T hyperbolic_tangent(T x) {
  const T doubled = 2 * std::abs(x);
  const SplitExponential<T> e = split_exponential(doubled > 40 ? T{40} : doubled);
  const T t = e.power * e.rest + (e.power - 1);
  return std::copysign(t / (t + 2), x);
}

/// Activations; `slope` is a function of the number that the operation keeps: its output, or its input.
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

template <class T>
struct Silu {
  static constexpr bool keeps_output = false;
  STAGECRAFT_PORTABLE static T value(T x) { return x * logistic(x); }
  STAGECRAFT_PORTABLE static T slope(T x) {
    const T s = logistic(x);
    return s * (1 + x * (1 - s));
  }
};

}  // namespace stagecraft::real
