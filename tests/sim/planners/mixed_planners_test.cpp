// The planners pipedream, piper and 2bw on clusters with devices of two types.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"

namespace stagecraft::mixed_planners_test {
namespace {

using test::chain;

/// A star of `first` devices of speed `fast`, then `second` devices of speed `slow`.
Cluster two_types(int first, int second, double fast, double slow) {
  Cluster cluster = test::star(first + second, 1e12, 0);
  cluster.types.push_back(cluster.types.front());
  cluster.types[DeviceTypeId{0}].name = "fast", cluster.types[DeviceTypeId{0}].speed = fast;
  cluster.types[DeviceTypeId{1}].name = "slow", cluster.types[DeviceTypeId{1}].speed = slow;
  for (int d = first; d < first + second; ++d) cluster.devices[DeviceId{d}].type = DeviceTypeId{1};
  return cluster;
}

}  // namespace

TEST_CASE("planners on two types: plans for four fast and four slow devices equal the ones by hand") {
  const ModelGraph model = chain(std::vector<double>(12, 1));
  const Cluster cluster = two_types(4, 4, 2, 1);
  // 12 layers of 3 s, or 1.5 s on the fast devices: two on each of these and one on each slow one keep 3 s.
  for (const char* name : {"pipedream", "piper"}) {
    CAPTURE(name);
    const Planned result = test::planned(name, model, cluster, "{micro_batch_size: 1, cuts: listed}");
    CHECK(result.predicted.value == doctest::Approx(3).epsilon(1e-9));
    CHECK(result.model_limit == result.predicted);
    CHECK(result.plan.stage_count() == 8);
  }
  const Planned wide = test::planned("2bw", model, cluster, "{largest_micro_batch: 1}", 16);
  CHECK(wide.predicted.value > 0);
  CHECK(wide.predicted.value >= wide.model_limit.value * (1 - 1e-12));
  // Even 12 x 3 s on 4 devices of speed 2 and 4 of speed 1: 36 / 12 for each micro-batch of one pipeline.
  CHECK(wide.model_limit.value / wide.plan.mini_batch * 16 == doctest::Approx(3).epsilon(1e-9));
}

TEST_CASE("2bw on two types orders stages by type, mostly as good as any order of the devices") {
  Rng rng(25, "mixed 2bw");
  int best = 0, count = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    std::vector<double> seconds;
    for (int l = rng.integer(2, 6); l > 0; --l) seconds.push_back(rng.integer(1, 9));
    const ModelGraph model = chain(seconds);
    const int first = rng.integer(1, 2), second = rng.integer(1, 2), devices = first + second;
    const Cluster cluster = two_types(first, second, rng.uniform(1, 4), 1);
    const Planned result = test::planned("2bw", model, cluster, "{largest_micro_batch: 1}");
    // Every order of the devices, as their names say it, and every division of the layers.
    double shortest = kInfinity;
    std::vector<int> order(devices);
    for (int d = 0; d < devices; ++d) order[d] = d;
    do {
      for (int width = 1; width <= devices; ++width)
        for (int depth = 1; depth <= std::min(devices / width, static_cast<int>(seconds.size())); ++depth) {
          const std::function<double(int, std::size_t)> slowest = [&](int stage, std::size_t from) {
            if (stage == depth) return from == seconds.size() ? 0.0 : kInfinity;
            double speed = kInfinity, sum = 0, smallest = kInfinity;
            for (int d = stage * width; d < (stage + 1) * width; ++d)
              speed = std::min(speed, cluster.types[cluster.devices[DeviceId{order[d]}].type].speed);
            for (std::size_t to = from + 1; to <= seconds.size(); ++to) {
              sum += 3 * seconds[to - 1] / speed;
              smallest = std::min(smallest, std::max(sum, slowest(stage + 1, to)));
            }
            return smallest;
          };
          shortest = std::min(shortest, slowest(0, 0) / width);
        }
    } while (std::next_permutation(order.begin(), order.end()));
    const double each = result.predicted.value / static_cast<double>(result.plan.mini_batch) * 8;
    CHECK(each >= shortest * (1 - 1e-6));
    CHECK(result.model_limit.value <= result.predicted.value * (1 + 1e-9));
    best += each <= shortest * (1 + 1e-6), ++count;
  }
  MESSAGE("2bw: ", best, " of ", count, " as good as the best of all orders");
  CHECK(best * 10 > count * 9);
}

}  // namespace stagecraft::mixed_planners_test
