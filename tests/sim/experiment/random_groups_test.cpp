// Random plans with groups, orders of ranks and divided states, on two simulators.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/core/random.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::random_groups_test {
namespace {

/// Degrees and an order that the rules allow: no experts, whose numbering would have to agree with the stages. Each
/// rank has one stage, because two messages between the same devices would share a card.
std::string random_plan(Rng& random) {
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[random.integer(0, static_cast<int>(values.size()) - 1)];
  };
  const int tensor = one_of({1, 2, 4, 8}), context = one_of({1, 1, 2}), replicas = one_of({1, 2, 4});
  const int stages = one_of({1, 2, 4}), holders = replicas * context;
  std::array<const char*, 5> axes = {"tp", "cp", "ep", "dp", "pp"};
  for (int i = 4; i > 0; --i) std::swap(axes[i], axes[random.integer(0, i)]);
  const std::array<const char*, 4> states = {"none", "optimizer", "gradients", "weights"};
  const std::string state = states[random.integer(0, 3)];
  std::string shard = fmt::format("{{state: {}", state);
  if (state != "none" && holders > 1 && random.integer(0, 1) == 1)
    shard += fmt::format(", within: {}", holders / one_of({1, 2}));
  if (state == "weights") shard += fmt::format(", reshard: {}", random.integer(0, 1) == 1);
  return fmt::format(
      "plan: {{planner: balanced, stages: {}, replicas: {}, micro_batch_size: {}, recompute: {}, group: {{tensor: {}, "
      "sequence: {}, context: {}, order: {}-{}-{}-{}-{}}}, shard: {}}}}}\nrun: {{schedule: {}, micro_batches: {}, "
      "iterations: 2}}\n",
      stages, replicas, one_of({1, 2}), one_of({0, 1}) ? "layers" : "none", tensor, random.integer(0, 1) == 1, context,
      axes[0], axes[1], axes[2], axes[3], axes[4], shard, std::array{"1f1b", "gpipe", "zb-h1"}[random.integer(0, 2)],
      4 * one_of({1, 2}));
}

}  // namespace

TEST_CASE("ideal and fluid agree on random groups, orders and divided states whose collectives have their cost") {
  // In GPipe's order a device never sends in both directions at a time. In the other orders an activation and a
  // gradient may share a card, which fluid knows: it takes a little longer then.
  Rng random(1, "random groups");
  for (int trial = 0; trial < test::trials(300); ++trial) {
    const std::string plan = random_plan(random);
    CAPTURE(plan);
    const std::string file =
        test::own_file("random_groups_test.yaml",
                       "schema: scenario/2\nmodel: {base: llama-3-8b, override: {layers: 8, sequence: 2048}}\n"
                       "cluster: {base: superpod-h100-256, override: {type: {preset: h100-sxm, memory: 800 GiB}}}\n"
                       "software: megatron-no-overlap\n" +
                           plan);
    const CompiledExperiment c = compile(load_experiment(file, {}));
    const double ideal = run(c, "ideal").report.length.value;
    CHECK(ideal > 0);
    const double fluid = run(c, "fluid").report.length.value;
    if (c.experiment.schedule.name() == "gpipe")
      CHECK(fluid == doctest::Approx(ideal).epsilon(1e-9));
    else
      CHECK((fluid >= ideal * (1 - 1e-9) && fluid <= 1.01 * ideal));
  }
}

}  // namespace stagecraft::random_groups_test
