#include "sim/core/wildcard.hpp"

#include <doctest/doctest.h>

using namespace stagecraft;

TEST_CASE("* stands for any letters") {
  CHECK(matches("gpu1", "gpu1"));
  CHECK_FALSE(matches("gpu1", "gpu10"));
  CHECK(matches("gpu1*", "gpu10"));
  CHECK(matches("gpu1*", "gpu1"));
  CHECK(matches("*", ""));
  CHECK(matches("*.nic", "a.b.nic"));
  CHECK_FALSE(matches("*.nic", "a.nics"));
  CHECK(matches("n*.gpu*", "node3.gpu7"));
  CHECK(matches("a*b*a", "abba"));
  CHECK_FALSE(matches("a*b*a", "aba-"));
  CHECK_FALSE(matches("", "a"));
}
