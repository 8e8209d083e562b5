#include <doctest/doctest.h>

#include "sim/core/random.hpp"
#include "sim/planners/shared/device_mix.hpp"

namespace stagecraft::device_mix_test {

TEST_CASE("mixes of 2 and 1 devices are listed with the first type counted fastest") {
  const std::vector<DeviceMix> mixes = DeviceMixes({2, 1}).list();
  const std::vector<std::vector<int>> expected = {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1}};
  REQUIRE(mixes.size() == expected.size());
  for (int n = 0; n < std::ssize(mixes); ++n) {
    CHECK(mixes[n].of_type == expected[n]);
    CHECK(mixes[n].devices == expected[n][0] + expected[n][1]);
    CHECK(mixes[n].types == (expected[n][0] > 0 ? 1U : 0U) + (expected[n][1] > 0 ? 2U : 0U));
  }
}

TEST_CASE("up_to has every mix of at least one and at most the given number of devices, once") {
  CHECK(DeviceMixes({2, 1}).up_to(3).size() == 5);  // 3 * 2 mixes without the empty one.
  CHECK(DeviceMixes({2, 1}).up_to(1).size() == 2);
  const std::vector<DeviceMix> one = DeviceMixes({3}).up_to(2);
  REQUIRE(one.size() == 2);
  CHECK((one[1].devices == 2 && one[1].types == 1));
}

TEST_CASE("the number of two mixes together is the sum of their numbers, on 200 random counts") {
  Rng rng(5, "mixes");
  for (int round = 0; round < 200; ++round) {
    std::vector<int> counts(rng.integer(1, 4));
    for (int& count : counts) count = rng.integer(0, 4);
    const DeviceMixes mixes(counts);
    CHECK(static_cast<double>(mixes.size()) == DeviceMixes::count(counts));
    const std::int64_t whole = rng.integer(0, static_cast<int>(mixes.size()) - 1);
    DeviceMix part = mixes.mix(whole), rest = part;
    for (int type = 0; type < std::ssize(counts); ++type) {
      CHECK(mixes.devices_of(whole, type) == part.of_type[type]);
      CHECK(mixes.has_free(whole, type) == (part.of_type[type] < counts[type]));
      part.of_type[type] = rng.integer(0, part.of_type[type]);
      rest.of_type[type] -= part.of_type[type];
    }
    CHECK(is_within(part, mixes.mix(whole)));
    CHECK(mixes.number_of(part) + mixes.number_of(rest) == whole);
  }
}

}  // namespace stagecraft::device_mix_test
