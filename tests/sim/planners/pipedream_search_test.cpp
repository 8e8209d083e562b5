// PipeDream's dynamic program against an exhaustive search over the plans of small random models.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/planners/chain_partition/pipedream.hpp"
#include "tests/sim/planners/random_graph.hpp"
#include "tests/sim/planners/random_pipedream.hpp"

namespace stagecraft::pipedream_search_test {
namespace {

chain_partition::Workload random_work(Rng& rng, int layers, bool chain) {
  const std::vector<chain_partition::LayerAmounts> amounts = test::random_amounts(rng, layers);
  const Digraph graph = test::random_graph(rng, layers, chain);
  return chain_partition::sum_up(amounts, graph,
                                 chain ? chain_partition::listed_cuts(layers) : chain_partition::all_cuts(graph, 1000));
}

}  // namespace

TEST_CASE("cuts: a chain, a diamond, and the cuts of the released optimizer") {
  Digraph diamond(4);
  diamond.add(0, 1), diamond.add(0, 2), diamond.add(1, 3), diamond.add(2, 3);
  const chain_partition::Cuts cuts = chain_partition::all_cuts(diamond, 100);
  CHECK(cuts.count() == 6);  // {}, 0, 01, 02, 012, 0123
  CHECK(cuts.contains(4, 2));
  CHECK(cuts.contains(4, 3));
  CHECK_FALSE(cuts.contains(3, 2));
  CHECK(cuts.layers_between(1, 5) == std::vector<int>{1, 2, 3});
  CHECK_THROWS_AS(chain_partition::all_cuts(diamond, 5), Infeasible);

  Digraph two_inputs(4);  // 0 - 2 - 3, 1 - 3
  two_inputs.add(0, 2), two_inputs.add(2, 3), two_inputs.add(1, 3);
  CHECK(chain_partition::all_cuts(two_inputs, 100).count() == 7);
  CHECK(chain_partition::cuts_after_first(two_inputs, 100).count() == 4);  // {}, 0, 02, 0123
  Digraph apart(2);
  CHECK_THROWS_AS(chain_partition::cuts_after_first(apart, 100), Infeasible);

  // What 0 sends is counted once, and not once both readers have it; the released code still counts it.
  const std::vector<chain_partition::LayerAmounts> amounts(4, {1, 1, 0});
  CHECK(chain_partition::sum_up(amounts, diamond, cuts).crossing == std::vector<double>{0, 1, 2, 2, 2, 0});
  CHECK(chain_partition::sum_up(amounts, diamond, cuts, chain_partition::Crossing::Frontier).crossing ==
        std::vector<double>{0, 1, 2, 2, 3, 1});
}

TEST_CASE("pipedream finds the best of all plans, on 1200 random models") {
  Rng rng(11, "pipedream");
  int feasible = 0, infeasible = 0, replicated = 0;
  for (int round = 0; round < 1200; ++round) {
    CAPTURE(round);
    const bool is_chain = round % 2 == 0;
    const chain_partition::Workload work = random_work(rng, rng.integer(1, is_chain ? 7 : 5), is_chain);
    const int machines = rng.integer(1, 5);
    const chain_partition::PipeDreamOptions options = test::random_options(rng, machines);
    const auto result = chain_partition::search_pipedream(work, options);
    const auto best = chain_partition::search_all(work, options, 1'000'000);
    REQUIRE(result.has_value() == best.has_value());
    (result ? feasible : infeasible)++;
    if (!result) continue;
    if (round < 200)  // It counts what it looks at.
      CHECK_THROWS_AS(chain_partition::search_all(work, options, best->states - 1), Infeasible);
    CHECK(result->seconds == doctest::Approx(best->seconds).epsilon(1e-12));
    CHECK(chain_partition::period_of(work, result->stages, options) == doctest::Approx(best->seconds).epsilon(1e-12));
    int next = 0, cut = 0;
    for (const chain_partition::FoundStage& stage : result->stages) {
      CHECK(stage.from == cut);
      cut = stage.to;
      for (const int device : stage.devices) CHECK(device == next++);
      replicated += stage.devices.size() > 1;
    }
    CHECK(cut == work.last());
    CHECK((options.fewer ? next <= machines : next == machines));
  }
  CHECK(feasible > 500);
  CHECK(infeasible > 100);
  CHECK(replicated > 200);
}

TEST_CASE("pipedream: levels of one machine do not change the result; servers hold whole parts") {
  Rng rng(12, "levels");
  for (int round = 0; round < 100; ++round) {
    const chain_partition::Workload work = random_work(rng, 6, true);
    chain_partition::PipeDreamOptions flat, below, above;
    const chain_partition::Level level{4, rng.uniform(1, 20)};
    flat.levels = {level}, below.levels = {{1, 1}, level}, above.levels = {level, {1, 1}};
    const auto result = chain_partition::search_pipedream(work, flat);
    const auto with_below = chain_partition::search_pipedream(work, below),
               with_above = chain_partition::search_pipedream(work, above);
    REQUIRE((result && with_below && with_above));
    CHECK(with_below->seconds == doctest::Approx(result->seconds).epsilon(1e-12));
    CHECK(with_above->seconds == doctest::Approx(result->seconds).epsilon(1e-12));

    chain_partition::PipeDreamOptions servers;
    servers.levels = {{2, 20}, {3, 5}};
    const auto nested = chain_partition::search_pipedream(work, servers);
    REQUIRE(nested);
    std::vector<int> seen;
    for (const chain_partition::FoundStage& stage : nested->stages)
      seen.insert(seen.end(), stage.devices.begin(), stage.devices.end());
    std::sort(seen.begin(), seen.end());
    CHECK(seen == std::vector<int>{0, 1, 2, 3, 4, 5});
  }
}

TEST_CASE("pipedream: the plan for 2 servers of 2 devices equals the one by hand") {
  // Layers of 4, 4, 4 and 4 seconds without weights or messages: both servers do the same half of all micro-batches, or
  // each one half of the layers; 16 seconds on 4 devices are 4.
  chain_partition::PipeDreamOptions options;
  options.levels = {{2, 1e9}, {2, 1e9}};
  const std::vector<chain_partition::LayerAmounts> amounts(4, {4, 0, 0});
  const auto result = chain_partition::search_pipedream(
      chain_partition::sum_up(amounts, Digraph(4), chain_partition::listed_cuts(4)), options);
  REQUIRE(result);
  CHECK(result->seconds == 4);

  // Weights of the last layer are 8 GB: it is alone with 4 seconds; the others, 12 seconds, take 2 and 1 devices in 4.
  std::vector<chain_partition::LayerAmounts> heavy = amounts;
  heavy.back().parameters = 8e9;
  options.levels = {{4, 1e9}};
  const auto alone = chain_partition::search_pipedream(
      chain_partition::sum_up(heavy, Digraph(4), chain_partition::listed_cuts(4)), options);
  REQUIRE(alone);
  CHECK(alone->seconds == 4);
  CHECK(alone->stages.back().devices.size() == 1);
  options.levels = {{2, 1e9}};
  // 2 replicas: released (16 + 4 * 8 / 2) / 2 = 16, paper max(16, 2 * 8) / 2 = 8; in two stages of 8 or 12 and 4.
  CHECK(chain_partition::search_pipedream(chain_partition::sum_up(heavy, Digraph(4), chain_partition::listed_cuts(4)),
                                          options)
            ->seconds == 8);
  options.formula = chain_partition::Formula::Paper;
  const auto paper = chain_partition::search_pipedream(
      chain_partition::sum_up(heavy, Digraph(4), chain_partition::listed_cuts(4)), options);
  CHECK(paper->seconds == 8);
  CHECK(paper->stages.size() == 1);
}

TEST_CASE("pipedream: a search that would take hours is refused before it starts") {
  const int layers = 3000;
  const chain_partition::Workload work =
      chain_partition::sum_up(std::vector<chain_partition::LayerAmounts>(layers, {1, 1, 1}), Digraph(layers),
                              chain_partition::listed_cuts(layers));
  chain_partition::PipeDreamOptions options;
  options.levels = {{2000, 1}};
  CHECK_THROWS_AS(chain_partition::search_pipedream(work, options), Infeasible);
  options.levels = {{4, 1}};
  CHECK(chain_partition::search_pipedream(work, options).has_value());
}

}  // namespace stagecraft::pipedream_search_test
