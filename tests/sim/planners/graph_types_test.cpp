// Graph pipelines on devices of two types, against all partitions and all choices of devices.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/numbers.hpp"
#include "sim/planners/graph/exact.hpp"
#include "sim/planners/graph/partition.hpp"
#include "tests/sim/planners/graph_brute.hpp"

namespace stagecraft::graph_types_test {
using namespace stagecraft::graph;
using namespace stagecraft::test;

namespace {

/// A random problem on devices of two types: the replicas of a stage have one type, or both and the slower one's speed.
GraphProblem random_types(Rng& rng, Digraph graph) {
  GraphProblem p = random_problem(rng, std::move(graph));
  p.of_type = {rng.integer(1, 3), rng.integer(1, 2)};
  p.devices = p.of_type[0] + p.of_type[1];
  p.replicas = {1, 1, 2, 2, 2}, p.type = {0, 1, 0, 1, kAnyType};
  for (Sums& sums : p.amounts) {
    const double first = sums.seconds[0], second = first * rng.uniform(0.4, 3), stash = sums.stash[0];
    sums.seconds[0] = first, sums.seconds[1] = second, sums.seconds[2] = first / 2, sums.seconds[3] = second / 2;
    sums.seconds[4] = std::max(first, second) / 2;
    for (int c = 0; c < 5; ++c) sums.stash[c] = stash / p.replicas[c];
  }
  p.among_replicas[4] = std::min(p.among_replicas[2], p.among_replicas[3]);
  if (rng.integer(0, 1) == 0)
    p.memory_by_choice[0] = p.memory_by_choice[2] = p.memory_by_choice[4] = rng.integer(15, 60);
  return p;
}

}  // namespace

TEST_CASE("graph-exact finds the best partitions and devices on 200 random graphs and two types") {
  Rng rng(41, "types");
  int possible = 0, near = 0, found_by_parts = 0;
  for (int n = 0; n < 200; ++n) {
    CAPTURE(n);
    const GraphProblem p = random_types(rng, test::random_graph(rng, rng.integer(1, 5), n % 10 == 0));
    const BestValues optimum = BruteForce(p, false).run();
    const auto result = search_exact(p, {}), fastest = search_exact(p, {.bottleneck = true});
    REQUIRE(result.has_value() == (optimum.iteration < kInfinity));
    const auto parts = partition(p);
    if (!result) {
      CHECK_FALSE(parts.has_value());
      continue;
    }
    ++possible;
    CHECK(result->value == doctest::Approx(optimum.iteration).epsilon(1e-12));
    CHECK(fastest->value == doctest::Approx(optimum.bottleneck).epsilon(1e-12));
    CHECK(least_bottleneck(p) <= optimum.bottleneck * (1 + 1e-9));
    check_partition(p, result->parts);
    std::vector<int> used(2, 0);
    for (const GraphStage& part : result->parts)
      for (std::size_t t = 0; t < 2; ++t) used[t] += part.of_type[t];
    CHECK((used[0] <= p.of_type[0] && used[1] <= p.of_type[1]));
    const PartitionFigures f = figures_of(p, result->parts, false);
    CHECK(f.fits);
    CHECK(iteration_of(p, f.bottleneck, f.path) == doctest::Approx(result->value).epsilon(1e-12));
    if (!parts) continue;
    ++found_by_parts;
    const PartitionFigures g = figures_of(p, parts->parts, false);
    CHECK(g.fits);
    CHECK(g.bottleneck >= optimum.bottleneck * (1 - 1e-12));
    near += g.bottleneck <= optimum.bottleneck * (1 + 1e-12);
  }
  MESSAGE("graphpipe on two types: the least bottleneck in ", near, " of ", found_by_parts, " of ", possible);
  CHECK(possible > 120);
  CHECK(near * 10 > found_by_parts * 7);
}

TEST_CASE("graph-exact: two types that differ only in name do not change the result") {
  Rng rng(42, "names");
  for (int n = 0; n < 100; ++n) {
    CAPTURE(n);
    GraphProblem p = random_problem(rng, test::random_graph(rng, rng.integer(1, 5), false));
    p.devices = rng.integer(2, 5), p.replicas = {1, 2}, p.among_replicas = all_choices(p.bandwidth);
    GraphProblem q = p;
    q.of_type = {1, p.devices - 1};
    q.replicas = {1, 1, 2, 2}, q.type = {0, 1, 1, kAnyType};
    for (Sums& sums : q.amounts)
      for (auto* amount : {&sums.seconds, &sums.stash})
        *amount = {(*amount)[0], (*amount)[0], (*amount)[1], (*amount)[1]};
    const auto one = search_exact(p, {}), two = search_exact(q, {});
    REQUIRE(one.has_value() == two.has_value());
    if (one) CHECK(two->value == doctest::Approx(one->value).epsilon(1e-12));
    const auto parts = partition(p), typed = partition(q);
    REQUIRE(parts.has_value() == typed.has_value());
    if (parts) CHECK(typed->value == doctest::Approx(parts->value).epsilon(1e-12));
  }
}

}  // namespace stagecraft::graph_types_test
