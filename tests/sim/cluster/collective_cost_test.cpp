#include "sim/cluster/collective_cost.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/cluster/accelerator.hpp"

namespace stagecraft::collective_cost_test {
namespace {

constexpr CollectiveConstants kConstants{Seconds{10e-6}, Seconds{2e-6}, Bandwidth{100e9}, 4e-9};
constexpr Bandwidth kCard{10e9};

double time(CollectiveKind kind, GroupShape group, double bytes) {
  return collective_time(kind, group, Bytes{bytes}, kConstants, kCard).value;
}

}  // namespace

TEST_CASE("all-reduces of an A100 node take what the fit to vTrain's table says") {
  const CollectiveConstants a100 = load_accelerator("topologies/devices/a100-80.yaml").collectives;
  const auto ms = [&](int ranks, double bytes) {
    return 1e3 * collective_time(CollectiveKind::AllReduce, {ranks}, Bytes{bytes}, a100, {}).value;
  };
  CHECK(ms(8, 134217728) == doctest::Approx(1.1510).epsilon(1e-3));
  CHECK(ms(4, 2097152) == doctest::Approx(0.0632).epsilon(1e-3));
}

TEST_CASE("inside a node, an all-reduce is a reduce-scatter and an all-gather") {
  const double both = time(CollectiveKind::ReduceScatter, {8}, 1e8) + time(CollectiveKind::AllGather, {8}, 1e8);
  CHECK(time(CollectiveKind::AllReduce, {8}, 1e8) == doctest::Approx(both));
  CHECK(time(CollectiveKind::AllReduce, {8}, 1e8) ==
        doctest::Approx(10e-6 + 7 * 2e-6 + 2 * 7 / 8.0 * 1e8 / 100e9 + 4e-9 * 1e4));
}

TEST_CASE("a group of one and an empty array take no time") {
  CHECK(time(CollectiveKind::AllReduce, {1}, 1e9) == 0);
  CHECK(time(CollectiveKind::AllReduce, {8}, 0) == 0);
}

TEST_CASE("over nodes, a ring has the cards of its members in a node, and never more than the bus") {
  const double one_card = time(CollectiveKind::AllGather, {16, 1}, 1e9);
  const double four_cards = time(CollectiveKind::AllGather, {16, 4}, 1e9);
  CHECK(one_card == doctest::Approx(15 / 16.0 * 1e9 / (0.85 * 10e9) + 5e-6 + 16 * 10e-6));
  CHECK(four_cards == doctest::Approx(15 / 16.0 * 1e9 / (4 * 0.85 * 10e9) + 5e-6 + 3e-6 + 4 * 10e-6));
  const Seconds fast = collective_time(CollectiveKind::AllGather, {16, 8}, Bytes{1e9}, kConstants, Bandwidth{400e9});
  CHECK(fast.value == doctest::Approx(15 / 16.0 * 1e9 / 100e9 + 5e-6 + 7e-6 + 2 * 10e-6));
}

TEST_CASE("in a mesh, a group has only the links between its members") {
  CollectiveConstants mesh{Seconds{}, Seconds{}, Bandwidth{700e9}};
  mesh.mesh = 8;
  const auto gather = [&](GroupShape group) {
    return collective_time(CollectiveKind::AllGather, group, Bytes{8e9}, mesh, Bandwidth{50e9}).value;
  };
  CHECK(gather({8}) == doctest::Approx(7e9 / 700e9));
  CHECK(gather({4}) == doctest::Approx(6e9 / 300e9));
  CHECK(gather({2}) == doctest::Approx(4e9 / 100e9));
  // Four members of each of two nodes have four cards, which are slower than the links; one member of each has one
  // card.
  CHECK(gather({8, 4}) == doctest::Approx(7e9 / (4 * 0.85 * 50e9) + 2 * 10e-6));
  CHECK(gather({2, 1}) == doctest::Approx(4e9 / (0.85 * 50e9) + 2 * 10e-6));
  const CollectiveConstants mi300x = load_accelerator("topologies/devices/mi300x.yaml").collectives;
  CHECK(mi300x.bus_of(4).value == doctest::Approx(3 * 48e9));
}

TEST_CASE("an all-to-all over nodes has one card for each member") {
  CHECK(time(CollectiveKind::AllToAll, {16, 8}, 1e9) == doctest::Approx(0.5 * 1e9 / 8.5e9 + 20e-6));
}

}  // namespace stagecraft::collective_cost_test
