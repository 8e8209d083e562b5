#include "backends/fluid/fair_share.hpp"

#include <doctest/doctest.h>

#include "backends/des/routes.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::paths_test {
namespace {

/// Routes both ways over: device 0 - cable of `duplex` - switch - full-duplex cable - device 1.
fluid::Paths round_trip(Duplex duplex) {
  Cluster cluster = test::bare_cluster(2, 1);
  test::connect(cluster, {0, 2}, 4e9, 0, duplex);
  test::connect(cluster, {1, 2}, 9e9, 0);
  test::ProgramBuilder builder(2);
  builder.send(0, 1, 8);
  builder.send(1, 0, 8);
  return fluid::paths_of(cluster, des::routes_of(builder.build(), cluster));
}

std::vector<std::int32_t> channels(const fluid::Paths& paths, std::int32_t route) {
  const auto list = paths.channels_of(route);
  return {list.begin(), list.end()};
}

}  // namespace

TEST_CASE(
    "directions are channels of their own where the link is full duplex, one where it is not, none where unshared") {
  const fluid::Paths full = round_trip(Duplex::Full), half = round_trip(Duplex::Half),
                     unshared = round_trip(Duplex::Unshared);
  CHECK(channels(full, 0) == std::vector<std::int32_t>{0, 3});
  CHECK(channels(full, 1) == std::vector<std::int32_t>{2, 1});
  CHECK(channels(half, 0) == std::vector<std::int32_t>{0, 3});
  CHECK(channels(half, 1) == std::vector<std::int32_t>{2, 0});
  CHECK(channels(unshared, 0) == std::vector<std::int32_t>{3});
  CHECK(channels(unshared, 1) == std::vector<std::int32_t>{2});
  for (const fluid::Paths* paths : {&full, &half, &unshared}) {
    CHECK(paths->alone == std::vector<double>{4e9, 4e9});
    CHECK(paths->capacity == std::vector<double>{4e9, 4e9, 9e9, 9e9});
  }
}

TEST_CASE("all stations of a medium are on one channel") {
  Cluster cluster = test::bare_cluster(4);
  test::connect(cluster, {0, 1, 2, 3}, 1e9, 0, Duplex::Half);
  test::ProgramBuilder builder(4);
  builder.send(0, 1, 8);
  builder.send(3, 2, 8);
  builder.send(1, 1, 8);
  const fluid::Paths paths = fluid::paths_of(cluster, des::routes_of(builder.build(), cluster));
  CHECK(channels(paths, 0) == std::vector<std::int32_t>{0});
  CHECK(channels(paths, 1) == std::vector<std::int32_t>{0});
  CHECK(channels(paths, 2).empty());
}

}  // namespace stagecraft::paths_test
