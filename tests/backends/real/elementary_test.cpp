#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include <doctest/doctest.h>

#include "backends/real/formulas/elementary.hpp"

using namespace stagecraft::real;

namespace {

/// Distance in units of the last place of the expected number.
template <class T>
double units(T actual, long double expected) {
  int exponent = 0;
  std::frexp(expected, &exponent);
  return static_cast<double>(
      std::abs(std::ldexp(static_cast<long double>(actual) - expected, std::numeric_limits<T>::digits - exponent)));
}

/// The worst distance of `found(x)` from `expected(x)` over 200,000 numbers between `low` and `high`.
template <class T, class Tested, class Expected>
double worst(T low, T high, Tested&& actual, Expected&& expected) {
  constexpr int count = 200000;
  double largest = 0;
  for (int i = 0; i <= count; ++i) {
    const T x = low + (high - low) * (static_cast<T>(i) / count);
    largest = std::max(largest, units<T>(actual(x), expected(static_cast<long double>(x))));
  }
  return largest;
}

}  // namespace

TEST_CASE_TEMPLATE("exp is right to about one unit in the last place", T, float, double) {
  using C = ExponentConstants<T>;
  const auto actual = [](T x) { return exponential(x); };
  const auto expected = [](long double x) { return std::exp(x); };
  // Half a unit each for 1 + rest and for rest, which is smaller than that; two more roundings of a third of it.
  CHECK(worst<T>(C::lowest, C::highest, actual, expected) < 1.5);
  CHECK(worst<T>(-1, 1, actual, expected) < 1.5);
  CHECK(worst<T>(T(-1e-4), T(1e-4), actual, expected) < 1.5);
}

TEST_CASE_TEMPLATE("exp agrees with the library's to two units", T, float, double) {
  using C = ExponentConstants<T>;
  CHECK(worst<T>(
            C::lowest, C::highest, [](T x) { return exponential(x); },
            [](long double x) { return static_cast<long double>(std::exp(static_cast<T>(x))); }) <= 2);
}

TEST_CASE_TEMPLATE("tanh and the logistic function are right to a few units", T, float, double) {
  const auto actual = [](T x) { return hyperbolic_tangent(x); };
  const auto expected = [](long double x) { return std::tanh(x); };
  // t has 1.3 units of its own, up to 2.8 where 2^k p and 2^k - 1 have opposite signs; the sum and the quotient one
  // more.
  for (const T scale : {T(1e-6), T(0.01), T(0.5), T(3), T(25)}) {
    CHECK(worst<T>(scale / 1000, scale, actual, expected) < 4);
    CHECK(worst<T>(-scale, -scale / 1000, actual, expected) < 4);
  }
  CHECK(worst<T>(
            T(-80), T(80), [](T x) { return logistic(x); }, [](long double x) { return 1 / (1 + std::exp(-x)); }) < 4);
}

TEST_CASE_TEMPLATE("the ends of the elementary functions", T, float, double) {
  constexpr T infinity = std::numeric_limits<T>::infinity(), nothing = std::numeric_limits<T>::quiet_NaN();
  CHECK(exponential(T{0}) == 1);
  CHECK(exponential(-infinity) == 0);
  CHECK(exponential(T(-1e30)) == 0);
  CHECK(exponential(infinity) == infinity);
  CHECK(exponential(T(1e30)) == infinity);
  CHECK(std::isnan(exponential(nothing)));
  CHECK(logistic(T{0}) == T(0.5));
  CHECK(logistic(infinity) == 1);
  CHECK(logistic(-infinity) == 0);
  CHECK(hyperbolic_tangent(infinity) == 1);
  CHECK(hyperbolic_tangent(-infinity) == -1);
  CHECK(hyperbolic_tangent(T(1e30)) == 1);
  CHECK(hyperbolic_tangent(T(1e-30)) == T(1e-30));
  CHECK(std::signbit(hyperbolic_tangent(T(-0.0))));
  CHECK(std::isnan(hyperbolic_tangent(nothing)));
}
