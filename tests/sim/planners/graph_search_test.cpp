// Graph pipelines: the exact search against all partitions, GraphPipe's partitioner against the exact search, and the
// closed form of equal branches.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/planners/graph/coarsen.hpp"
#include "sim/planners/graph/exact.hpp"
#include "sim/planners/graph/partition.hpp"
#include "sim/planners/graph/structure.hpp"
#include "tests/sim/planners/graph_brute.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::graph_search_test {
using namespace stagecraft::graph;
using namespace stagecraft::test;

namespace {

/// Equal parallel chains, and a layer without cost that joins them.
GraphProblem branches(int count, int length, int devices, int micro_batches, bool joined = true) {
  GraphProblem p;
  p.devices = devices, p.micro_batches = micro_batches, p.replicas = {1};
  p.layers = Digraph(count * length + joined);
  for (int l = 0; l < count * length; ++l) {
    const bool last = (l + 1) % length == 0;
    if (!last || joined) p.layers.add(l, last ? count * length : l + 1);
  }
  p.amounts.assign(count * length, layer(3, 1, 1));
  if (joined) p.amounts.push_back(layer(0, 0, 0));
  p.output.assign(p.amounts.size(), 1);
  return p;
}

/// Parallel chains, some of them equal, between an optional first layer and a last one.
GraphProblem random_twins(Rng& rng) {
  const int count = rng.integer(2, 4), length = rng.integer(1, 2), first = rng.integer(0, 1);
  Digraph graph(first + count * length + 1);
  for (int b = 0; b < count; ++b)
    for (int l = 0; l < length; ++l) {
      const int here = first + b * length + l;
      if (l > 0) graph.add(here - 1, here);
      if (l == 0 && first == 1) graph.add(0, here);
      if (l + 1 == length && rng.integer(0, 4) > 0) graph.add(here, graph.size() - 1);
    }
  GraphProblem p = random_problem(rng, std::move(graph));
  for (int b = 1; b < count; ++b)
    for (int l = 0; l < length && rng.integer(0, 5) > 0; ++l) {
      p.amounts[first + b * length + l] = p.amounts[first + l];
      p.output[first + b * length + l] = p.output[first + l];
    }
  return p;
}

}  // namespace

TEST_CASE("graph-exact finds the best of all partitions on 200 random graphs") {
  Rng rng(1, "exact");
  int impossible = 0, limited = 0;
  for (int n = 0; n < 200; ++n) {
    CAPTURE(n);
    const GraphProblem p = random_problem(rng, test::random_graph(rng, rng.integer(1, 6), n % 10 == 0));
    const BestValues optimum = BruteForce(p, false).run();
    const auto result = search_exact(p, {});
    REQUIRE(result.has_value() == (optimum.iteration < kInfinity));
    const auto fastest = search_exact(p, {.bottleneck = true});
    REQUIRE(fastest.has_value() == result.has_value());
    impossible += !result;
    limited += p.memory < kInfinity;
    if (!result) continue;
    CHECK(fastest->value == doctest::Approx(optimum.bottleneck).epsilon(1e-12));
    CHECK(result->value == doctest::Approx(optimum.iteration).epsilon(1e-12));
    check_partition(p, result->parts);
    const PartitionFigures f = figures_of(p, result->parts, false);
    CHECK(iteration_of(p, f.bottleneck, f.path) == doctest::Approx(result->value).epsilon(1e-12));
    CHECK(f.memory <= p.memory);
    CHECK(f.devices <= p.devices);
  }
  CHECK(impossible > 10);
  CHECK(limited - impossible > 30);
}

TEST_CASE("graph-exact finds the best of all partitions of wider graphs into many stages") {
  Rng rng(7, "wide");
  int possible = 0;
  const int graphs = test::trials(400, 100);
  for (int n = 0; n < graphs; ++n) {
    CAPTURE(n);
    // One or two later layers read each layer, so several orders lead to the same set of layers.
    const int layers = 8;
    Digraph graph(layers);
    for (int l = 0; l + 1 < layers; ++l)
      for (int r = rng.integer(1, 2); r > 0; --r) graph.add(l, rng.integer(l + 1, layers - 1));
    GraphProblem p = random_problem(rng, graph);
    p.devices = 8, p.micro_batches = rng.integer(1, 4), p.replicas = {1}, p.operations = 0;
    p.memory = kInfinity;
    if (n % 2 == 1) {  // Memory decides: much is kept for each micro-batch in flight, and some layers take no time.
      p.micro_batches = 8, p.memory = rng.integer(25, 40);
      for (Sums& amounts : p.amounts) amounts = layer(rng.integer(0, 2) * 5, rng.integer(0, 3), rng.integer(0, 9));
    }
    const BestValues optimum = BruteForce(p, false).run();
    const auto result = search_exact(p, {});
    REQUIRE(result.has_value() == (optimum.iteration < kInfinity));
    if (!result) continue;
    ++possible;
    CHECK(result->value == doctest::Approx(optimum.iteration).epsilon(1e-12));
  }
  CHECK(possible > graphs * 5 / 8);
}

TEST_CASE("graph-exact finds the best of all sequences on 100 random graphs") {
  Rng rng(2, "sequences");
  int possible = 0;
  for (int n = 0; n < 100; ++n) {
    CAPTURE(n);
    const GraphProblem p = random_problem(rng, test::random_graph(rng, rng.integer(1, 5), false));
    const BestValues optimum = BruteForce(p, true).run();
    const auto result = search_exact(p, {.sequential = true});
    REQUIRE(result.has_value() == (optimum.iteration < kInfinity));
    if (!result) continue;
    ++possible;
    CHECK(result->value == doctest::Approx(optimum.iteration).epsilon(1e-12));
    const PartitionFigures f = figures_of(p, result->parts, true);
    CHECK(iteration_of(p, f.bottleneck, f.path) == doctest::Approx(result->value).epsilon(1e-12));
    CHECK(f.depth == static_cast<int>(result->parts.size()));
    const auto graph = search_exact(p, {});  // A sequence is a graph that waits more and keeps more.
    REQUIRE(graph.has_value());
    CHECK(graph->value <= result->value * (1 + 1e-12));
    CHECK(f.memory <= p.memory);
  }
  CHECK(possible > 50);
}

TEST_CASE("graph-exact: trying equal branches in one order alone changes only the amount of work") {
  Rng rng(3, "twins");
  std::int64_t every_order = 0, one_order = 0;
  int twins = 0;
  for (int n = 0; n < 200; ++n) {
    CAPTURE(n);
    const GraphProblem p = random_twins(rng);
    twins += !twin_chains(p).empty();
    for (const bool sequential : {false, true}) {
      const auto slow = search_exact(p, {.sequential = sequential, .exchange_twins = false});
      const auto fast = search_exact(p, {.sequential = sequential});
      REQUIRE(slow.has_value() == fast.has_value());
      if (!slow) continue;
      CHECK(fast->value == doctest::Approx(slow->value).epsilon(1e-12));
      check_partition(p, fast->parts);
      const PartitionFigures f = figures_of(p, fast->parts, sequential);
      CHECK(iteration_of(p, f.bottleneck, f.path) == doctest::Approx(fast->value).epsilon(1e-12));
      CHECK(f.memory <= p.memory);
      every_order += slow->states, one_order += fast->states;
    }
  }
  CHECK(twins > 100);
  CHECK(one_order < 0.8 * static_cast<double>(every_order));
}

TEST_CASE("graph-exact: an incumbent does not change the result; too many partitions are refused") {
  Rng rng(4, "incumbent");
  for (int n = 0; n < 50; ++n) {
    const GraphProblem p = random_problem(rng, test::random_graph(rng, 6, false));
    const auto result = search_exact(p, {});
    if (!result) continue;
    const auto again = search_exact(p, {.incumbent = result->value});
    REQUIRE(again.has_value());
    CHECK(again->value == doctest::Approx(result->value).epsilon(1e-12));
    CHECK(again->states <= result->states);
    if (result->value > 0) CHECK_FALSE(search_exact(p, {.incumbent = result->value * 0.99}).has_value());
  }
  CHECK_THROWS_AS(search_exact(branches(3, 3, 4, 4), {.most_states = 10}), Infeasible);
  CHECK_THROWS_AS(search_exact(branches(1, kMostLayers, 2, 4), {}), Infeasible);
}

TEST_CASE("graph-exact: two branches of four blocks on eight devices are 4 deep, in sequence 8 deep") {
  for (const int m : {8, 32, 64}) {
    CAPTURE(m);
    const GraphProblem p = branches(2, 4, 8, m, false);
    const auto graph = search_exact(p, {}), chain = search_exact(p, {.sequential = true});
    REQUIRE((graph && chain));
    CHECK(graph->parts.size() == 8);
    CHECK(chain->parts.size() == 8);
    CHECK(figures_of(p, graph->parts, false).depth == 4);
    CHECK(figures_of(p, chain->parts, true).depth == 8);
    CHECK(graph->value == 3.0 * (m + 3));
    CHECK(chain->value == 3.0 * (m + 7));
    // A layer that joins them runs with the end of one branch, as one stage, and waits for the other: one deeper.
    const auto joined = search_exact(branches(2, 4, 8, m), {});
    REQUIRE(joined.has_value());
    CHECK(joined->value == 3.0 * (m + 4));
    CHECK(joined->parts.size() == 8);
  }
}

TEST_CASE("graph-exact: in sequence q equal branches of p stages take (m + q p - 1) / (m + p - 1) as long") {
  for (const int q : {2, 3, 4}) {
    CAPTURE(q);
    const int p = 3, m = 40;
    const GraphProblem problem = branches(q, p, q * p, m, false);
    const auto graph = search_exact(problem, {}), chain = search_exact(problem, {.sequential = true});
    REQUIRE((graph && chain));
    CHECK(chain->value / graph->value == doctest::Approx((m + q * p - 1.0) / (m + p - 1)).epsilon(1e-12));
  }
}

TEST_CASE("graphpipe is never below the least bottleneck, fits in memory, and mostly reaches it") {
  Rng rng(5, "graphpipe");
  int best = 0, found_by_both = 0, missed = 0;
  for (int n = 0; n < 300; ++n) {
    CAPTURE(n);
    const GraphProblem p =
        n % 3 == 0 ? random_twins(rng) : random_problem(rng, test::random_graph(rng, rng.integer(1, 7), n % 3 == 1));
    const auto exact = search_exact(p, {.bottleneck = true});
    const auto result = partition(p);
    missed += exact && !result;
    if (!result) continue;
    REQUIRE(exact.has_value());
    ++found_by_both;
    check_partition(p, result->parts);
    const PartitionFigures f = figures_of(p, result->parts, false);
    CHECK(f.bottleneck <= result->value * (1 + 1e-12));
    CHECK(f.bottleneck >= exact->value * (1 - 1e-12));
    CHECK(f.bottleneck >= least_bottleneck(p) * (1 - 1e-12));
    CHECK(f.memory <= p.memory);
    CHECK(f.devices <= p.devices);
    best += f.bottleneck <= exact->value * (1 + 1e-12);
  }
  MESSAGE(best, " of ", found_by_both, " have the least bottleneck of all, ", missed, " were not found");
  CHECK(found_by_both > 150);
  CHECK(best > 0.7 * found_by_both);
}

TEST_CASE("graphpipe always finds the least bottleneck of a chain") {
  Rng rng(6, "chains");
  for (int n = 0; n < 150; ++n) {
    CAPTURE(n);
    const GraphProblem p = random_problem(rng, test::random_graph(rng, rng.integer(1, 7), true));
    const auto exact = search_exact(p, {.bottleneck = true});
    const auto result = partition(p);
    REQUIRE(result.has_value() == exact.has_value());
    if (result) CHECK(figures_of(p, result->parts, false).bottleneck == doctest::Approx(exact->value).epsilon(1e-12));
  }
}

TEST_CASE("graphpipe puts layers that take no time into one stage") {
  GraphProblem p = branches(2, 2, 4, 8, false);
  for (Sums& layer : p.amounts) std::fill(layer.seconds.begin(), layer.seconds.end(), 0.0);
  const auto result = partition(p);
  REQUIRE(result.has_value());
  CHECK(result->value == 0);
}

TEST_CASE("graphpipe: of equally fast partitions the one with fewer micro-batches in flight wins") {
  const GraphProblem p = branches(2, 2, 4, 8, false);
  const auto result = partition(p);
  REQUIRE(result.has_value());
  CHECK(result->value == 3);
  const PartitionFigures f = figures_of(p, result->parts, false);
  CHECK(f.depth == 2);
  CHECK(f.memory == 1 + 2);
}

TEST_CASE("graphpipe: the case study has its stages, and a layer that joins branches needs no device") {
  const GraphProblem p = branches(2, 4, 8, 32, false), joined = branches(2, 4, 8, 32);
  for (const GraphProblem* one : {&p, &joined}) {
    const auto result = partition(*one);
    REQUIRE(result.has_value());
    CHECK(result->value == 3);
    CHECK(result->parts.size() == 8);
    check_partition(*one, result->parts);
  }
  CHECK(figures_of(p, partition(p)->parts, false).depth == 4);
  CHECK(figures_of(joined, partition(joined)->parts, false).depth == 5);
  // Four branches for two devices: one takes two of them and the join.
  const GraphProblem few = branches(4, 3, 2, 8);
  CHECK(partition(few)->value == 18);
}

TEST_CASE("decomposition: chains and branches are divided into parts, and so is any other graph") {
  const auto shape = [](const Digraph& graph) {
    const std::function<std::string(const Tree&)> text = [&](const Tree& tree) {
      if (tree.kind == Tree::Kind::Layer) return std::to_string(tree.layer);
      std::string joined;
      for (const Tree& part : tree.parts)
        joined += (joined.empty() ? "" : tree.kind == Tree::Kind::Series ? " " : " | ") + text(part);
      return tree.kind == Tree::Kind::Series ? joined : "(" + joined + ")";
    };
    const Decomposition d = decompose(graph);
    return text(d.tree) + " +" + std::to_string(d.added);
  };
  CHECK(shape(branches(2, 2, 1, 1).layers) == "(0 1 | 2 3) 4 +0");
  Digraph residual(4);  // A way round a layer changes nothing.
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {0, 2}, {2, 3}}) residual.add(from, to);
  CHECK(shape(residual) == "0 1 2 3 +0");
  Digraph n(4);  // 0 -> 2, 0 -> 3, 1 -> 3: the smallest graph that is not series-parallel.
  for (const auto& [from, to] : {std::pair{0, 2}, {0, 3}, {1, 3}}) n.add(from, to);
  CHECK(shape(n) == "(0 | 1) (2 | 3) +1");
}

TEST_CASE("parts are alike if they have equal costs and equal inputs, inside and outside") {
  // Two branches of four layers, and one that joins them; a way round layers of one branch, or of both.
  const auto alike = [](int from, int other_from, double other_cost) {
    GraphProblem p = branches(2, 4, 4, 8);
    if (from >= 0) p.layers.add(from, 3);
    if (other_from >= 0) p.layers.add(4 + other_from, 7);
    p.amounts[6] = layer(other_cost, 1, 1);
    const Structure s = structure_of(p, decompose(p.layers).tree);
    const PartNode& fork = s.root.parts.front();
    return fork.parts[0].kind == fork.parts[1].kind;
  };
  CHECK(alike(-1, -1, 3));
  CHECK(alike(0, 0, 3));
  CHECK_FALSE(alike(0, -1, 3));
  CHECK_FALSE(alike(0, 1, 3));
  CHECK_FALSE(alike(-1, -1, 4));
}

TEST_CASE("fused chains have the same work in fewer blocks, and equal branches stay alike") {
  const GraphProblem p = branches(3, 4, 4, 8);
  const Coarse coarse = fuse_chains(p, 7);
  CHECK(coarse.problem.size() == 7);
  for (const std::vector<int>& block : coarse.layers) CHECK((block.size() == 2 || block.front() == 12));
  CHECK(twin_chains(coarse.problem).size() == 1);
  CHECK(fuse_chains(p, 1).problem.size() == 4);
  const auto fine = search_exact(p, {}), blocks = search_exact(coarse.problem, {});
  REQUIRE((fine && blocks));
  CHECK(blocks->value >= fine->value);
  const std::vector<GraphStage> parts = in_layers(coarse, blocks->parts);
  check_partition(p, parts);
  const PartitionFigures f = figures_of(p, parts, false);
  CHECK(iteration_of(p, f.bottleneck, f.path) == doctest::Approx(blocks->value).epsilon(1e-12));
}

}  // namespace stagecraft::graph_search_test
