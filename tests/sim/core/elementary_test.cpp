#include "sim/core/elementary.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"

namespace stagecraft::elementary_test {

TEST_CASE("logarithms and powers of e are within two units of the last bit") {
  // Units in the last place of the right value, which the library rounds itself by less than one.
  const auto units = [](double here, double right) {
    int exponent = 0;
    std::frexp(right, &exponent);
    return std::abs(here - right) / std::ldexp(1, exponent - 53);
  };
  Rng rng(3, "elementary functions");
  for (int trial = 0; trial < 20000; ++trial) {
    const double limit = trial % 2 == 0 ? 300 : 1, power = rng.uniform(-limit, limit), x = std::exp(power);
    CHECK(units(exponential(power), x) <= 3);
    CHECK(units(logarithm(x), std::log(x)) <= 3);
  }
  CHECK(logarithm(1) == 0);
  CHECK(exponential(0) == 1);
  CHECK(logarithm(0) == -kInfinity);
  CHECK(exponential(1000) == kInfinity);
  CHECK(std::isnan(logarithm(-1)));
}

TEST_CASE("they have these bits on every machine") {
  CHECK(logarithm(10) == 0x1.26bb1bbb55516p+1);
  CHECK(logarithm(1e-5) == -0x1.7069e2aa2aa5bp+3);
  CHECK(exponential(1) == 0x1.5bf0a8b14576ap+1);
  CHECK(exponential(-3.7) == 0x1.9511fc6871044p-6);
}

}  // namespace stagecraft::elementary_test
