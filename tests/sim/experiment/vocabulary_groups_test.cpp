// A vocabulary that the ranks of a pipeline divide, and the devices of a tensor or context group once more.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "sim/result/metrics.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::vocabulary_groups_test {
namespace {

CompiledExperiment compiled(const std::string& plan, const std::vector<std::string>& more = {}) {
  std::vector<std::string> sets{"run.micro_batches=8", "plan={planner: balanced, vocabulary: all, " + plan + "}"};
  sets.insert(sets.end(), more.begin(), more.end());
  return compile(load_experiment("examples/large-vocabulary", sets));
}

double metric(const CompiledExperiment& c, const char* backend, const char* name) {
  const Outcome outcome = run(c, backend);
  return metric_value(name, view_of(c, outcome));
}

const StageCost& part(const CompiledExperiment& c) { return *c.costs.at(StageId{0}, 0).vocabulary; }

}  // namespace

TEST_CASE("a device of a tensor group has a part of the words of its rank, and exchanges sums with its group") {
  const CompiledExperiment ranks = compiled("stages: 8"), both = compiled("stages: 4, group: {tensor: 2}"),
                           rows = compiled("stages: 4, group: {tensor: 2, sequence: true}");
  for (const CompiledExperiment* c : {&both, &rows}) {
    const EachPass<TimeByClass>&here = part(*c).passes, &there = part(ranks).passes;
    CHECK(here.forward.products.value == doctest::Approx(there.forward.products.value).epsilon(1e-9));
    CHECK(here.input_gradient.products.value == doctest::Approx(there.input_gradient.products.value).epsilon(1e-9));
    CHECK(here.forward.tensor.value > 0);
    CHECK(here.input_gradient.tensor.value > 0);
    CHECK(there.forward.tensor.value == 0);
    // Half of the layers of a stage, and of its words, as on twice as many ranks; only norms and biases are copied.
    CHECK(c->program.memory[DeviceId{0}].weights.value ==
          doctest::Approx(ranks.program.memory[DeviceId{0}].weights.value).epsilon(1e-3));
  }
  // A device keeps its part of the softmax and the input of the scores, bf16: with sequence parallelism half of its
  // rows.
  const double input = 2.0 * 2048 * 3072;
  CHECK(part(both).memory.stash.value == doctest::Approx(part(ranks).memory.stash.value).epsilon(1e-9));
  CHECK(part(both).memory.stash.value - part(rows).memory.stash.value == doctest::Approx(input / 2).epsilon(1e-3));
}

TEST_CASE(
    "exchanges of ranks are divided over the devices of a group, with an instruction for each device or for the "
    "group") {
  const std::string plan = "stages: 4, group: {tensor: 2, sequence: true}";
  const CompiledExperiment folded = compiled(plan), alone = compiled("stages: 4");
  const auto bytes = [](const CompiledExperiment& c, char op, CollectiveKind kind) {
    for (const CollectiveCall& call : c.program.collectives)
      if (call.purpose == Purpose::Vocabulary && call.op == op && c.program.shape(call).kind == kind)
        return static_cast<double>(c.program.shape(call).bytes);
    return 0.0;
  };
  // Rows in bf16; with one barrier statistics of 12 bytes a token, and the gradient of the input of the scores.
  constexpr double kTokens = 2048, kRows = 2 * kTokens * 3072;
  struct Expected {
    char op;
    CollectiveKind kind;
    double bytes;
  };
  for (const Expected& e : {Expected{'F', CollectiveKind::Broadcast, kRows},
                            {'F', CollectiveKind::AllReduce, kRows},
                            {'S', CollectiveKind::AllReduce, 12 * kTokens + kRows},
                            {'B', CollectiveKind::Broadcast, kRows}}) {
    CAPTURE(e.op);
    CHECK(bytes(alone, e.op, e.kind) == e.bytes);
    CHECK(bytes(folded, e.op, e.kind) == e.bytes / 2);
  }
  const double period = metric(folded, "fluid", "period_s");
  CHECK(metric(folded, "simgrid", "period_s") == doctest::Approx(period).epsilon(1e-9));
  CHECK(metric(compiled(plan, {"run.detail=devices"}), "fluid", "period_s") == doctest::Approx(period).epsilon(1e-9));
}

TEST_CASE("every schedule of a divided vocabulary runs with tensor, context and data groups, also as messages") {
  for (const char* schedule : {"vocab-1", "vocab-2", "interlaced"})
    for (const char* plan :
         {"stages: 4, group: {tensor: 2}",
          "stages: 2, group: {tensor: 2, sequence: true}, replicas: 2, shard: optimizer",
          "stages: 4, group: {context: 2}", "stages: 2, group: {tensor: 2, sequence: true, context: 2}"})
      for (const char* collectives : {"cost", "flows"}) {
        CAPTURE(schedule);
        CAPTURE(plan);
        CAPTURE(collectives);
        const CompiledExperiment c =
            compiled(plan, {fmt::format("run.schedule={}", schedule), "software=megatron-no-overlap",
                            fmt::format("run.collectives={}", collectives)});
        const double ideal = metric(c, "ideal", "period_s"), fluid = metric(c, "fluid", "period_s");
        CHECK(ideal <= fluid * (1 + 1e-9));
        CHECK(metric(c, "simgrid", "period_s") == doctest::Approx(fluid).epsilon(1e-9));
        if (collectives != std::string("cost")) continue;
        // A device computes every op of eight micro-batches, with what its group exchanges for them.
        const StageCost& stage = c.costs.at(StageId{0}, 0);
        const Seconds each = stage.forward + stage.backward + stage.vocabulary->forward + stage.vocabulary->backward;
        CHECK(ideal >= 8 * each.value);
      }
}

}  // namespace stagecraft::vocabulary_groups_test
