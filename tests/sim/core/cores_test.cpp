#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/cores.hpp"
#include "sim/core/numbers.hpp"

using namespace stagecraft;

TEST_CASE("a quota is the share of its period, and none is infinite") {
  CHECK(quota_of("150000 100000") == doctest::Approx(1.5));
  CHECK(quota_of("200000 100000") == doctest::Approx(2));
  CHECK(quota_of("max 100000") == kInfinity);
  CHECK(quota_of("") == kInfinity);
  CHECK(quota_of("-1 100000") == kInfinity);
}

TEST_CASE("threads at full speed are the whole processors of the mask and of the quota, and at least one") {
  UsableCores cores;
  cores.order = {0, 1, 2, 3};
  cores.quota = kInfinity;
  CHECK(cores.count() == 4);
  cores.quota = 2.9;
  CHECK(cores.count() == 2);
  cores.quota = 0.5;
  CHECK(cores.count() == 1);
  cores.quota = 16;
  CHECK(cores.count() == 4);
}

TEST_CASE("every physical core is used once before any is used twice") {
  int physical = 0;
  // Two threads a core, numbered in pairs: 0 and 1 share a core.
  const auto pairs = [](int p) { return std::to_string(p / 2); };
  CHECK(one_per_core_first({0, 1, 2, 3, 4, 5}, pairs, physical) == std::vector<int>{0, 2, 4, 1, 3, 5});
  CHECK(physical == 3);
  // Numbered core by core first: 0 and 4 share a core.
  const auto halves = [](int p) { return std::to_string(p % 4); };
  CHECK(one_per_core_first({0, 1, 2, 3, 4, 5, 6, 7}, halves, physical) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(physical == 4);
  // A mask that has both threads of a core and one of another.
  CHECK(one_per_core_first({2, 3, 5}, pairs, physical) == std::vector<int>{2, 5, 3});
}

TEST_CASE("the processors of this machine are all different, and no more than its cores are physical") {
  const UsableCores cores = usable_cores();
  REQUIRE(!cores.order.empty());
  std::vector<int> sorted = cores.order;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  CHECK(cores.physical >= 1);
  CHECK(cores.physical <= static_cast<int>(cores.order.size()));
  CHECK(cores.count() >= 1);
}
