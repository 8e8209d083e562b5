// Stages on groups of devices, from a scenario to its times and its memory.

#include <doctest/doctest.h>

#include <map>

#include <fmt/format.h>

#include "sim/cluster/collective_cost.hpp"
#include "sim/cost/closed_form.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::groups_test {
namespace {

Experiment scenario(const std::string& plan, const std::string& more = {}, const std::string& model = "llama-3-8b",
                    const std::string& run = "schedule: 1f1b, micro_batches: 16, iterations: 3") {
  const std::string file = "build/groups_test.yaml";
  test::write_file(file, "schema: scenario/2\nmodel: " + model +
                             "\ncluster: superpod-h100-256\nplan: {planner: balanced, " + plan + "}\nrun: {" + run +
                             "}\n" + more);
  return load_experiment(file, {});
}

Outcome outcome(const Experiment& e) { return run(compile(e), "ideal"); }

std::string refusal(const std::string& plan, const std::string& more = {}, const std::string& model = "llama-3-8b") {
  try {
    plan_experiment(scenario(plan, more, model));
  } catch (const InputError& e) {
    return e.problems().front().message;
  } catch (const Infeasible& e) {
    return e.problem().message;
  }
  return "accepted";
}

TrainingRun llama_run(Degrees degrees, int stages, int micro_batches) {
  return {.model = {.layers = 32,
                    .hidden = 4096,
                    .heads = 32,
                    .key_value_heads = 8,
                    .width = 14336,
                    .sequence = 8192,
                    .vocabulary = 128256,
                    .gated = true,
                    .tied = false},
          .software = software_stack("megatron-core"),
          .degrees = degrees,
          .sequence_parallel = true,
          .stages = stages,
          .micro_batches = micro_batches,
          .card = Bandwidth{50e9}};
}

}  // namespace

TEST_CASE("a group simulated by its collectives takes what the closed form says") {
  for (const Degrees& d :
       {Degrees{.tensor = 4, .sequence = true}, Degrees{.tensor = 8, .sequence = true},
        Degrees{.context = 2, .tensor = 4, .sequence = true}, Degrees{.replicas = 4, .tensor = 8, .sequence = true},
        Degrees{.replicas = 2, .context = 4, .tensor = 8, .sequence = true}}) {
    CAPTURE(d.tensor);
    CAPTURE(d.context);
    const Experiment e =
        scenario(fmt::format("stages: 1, replicas: {}, group: {{tensor: {}, sequence: true, context: {}}}", d.replicas,
                             d.tensor, d.context),
                 "software: megatron-core\n");
    const TrainingRun formula = llama_run(d, 1, 16);
    const IterationTime expected = iteration_time(formula, e.rules->accelerators[DeviceTypeId{0}]);
    CHECK(outcome(e).report.period.value == doctest::Approx(expected.total().value).epsilon(0.01));
  }
}

TEST_CASE("simulators agree on groups whose collectives have their cost") {
  for (const std::string plan :
       {"stages: 2, replicas: 4, group: {tensor: 4, sequence: true, context: 2}, shard: optimizer",
        "stages: 4, replicas: 2, group: {tensor: 8}", "stages: 4, placement: loop, group: {tensor: 8}"}) {
    CAPTURE(plan);
    const bool loop = plan.find("loop") != std::string::npos;
    const CompiledExperiment c =
        compile(scenario(plan, "software: megatron-bridge\n", "llama-3-8b",
                         fmt::format("schedule: {}, micro_batches: 8, iterations: 3", loop ? "interleaved" : "1f1b")));
    const double ideal = run(c, "ideal").report.length.value;
    CHECK(run(c, "fluid").report.length.value == doctest::Approx(ideal).epsilon(1e-9));
    CHECK(run(c, "simgrid").report.length.value == doctest::Approx(ideal).epsilon(1e-9));
  }
}

TEST_CASE("replicas, stages and groups divide the memory of a device as the closed form does") {
  const Experiment e = scenario("stages: 4, replicas: 2, group: {tensor: 4, sequence: true}, shard: optimizer",
                                "software: megatron-core\n");
  TrainingRun formula = llama_run({.replicas = 2, .tensor = 4, .sequence = true}, 4, 8);
  formula.sharding = StateSharding::Optimizer;
  Bytes fullest;
  for (const DeviceReport& d : outcome(e).report.devices) fullest = std::max(fullest, d.memory.total);
  CHECK(fullest.value == doctest::Approx(device_memory(formula).value).epsilon(0.02));
}

TEST_CASE("a group of one costs what its stack says without collectives") {
  const Experiment e = scenario("stages: 4");
  const Outcome o = outcome(e);
  CHECK(o.report.classes->spent.tensor.value == 0);
  CHECK(o.report.classes->spent.total().value + o.report.classes->waiting.value ==
        doctest::Approx(o.report.classes->length.value));
}

TEST_CASE("dividing states over replicas moves memory, not work") {
  std::map<std::string, Bytes> resident;
  for (const std::string shard : {"none", "optimizer", "gradients", "weights"}) {
    const Outcome o = outcome(scenario("stages: 2, replicas: 8, shard: " + shard, "", "gpt2-xl"));
    resident[shard] = o.report.devices[DeviceId{0}].memory.resident;
  }
  CHECK(resident["optimizer"] < resident["none"]);
  CHECK(resident["gradients"] < resident["optimizer"]);
  // With a pipeline, weights are gathered once for an iteration and stay whole.
  CHECK(resident["weights"].value == doctest::Approx(resident["optimizer"].value));
}

TEST_CASE("one copy of a row for each node takes less of the network than one for each expert") {
  const auto expert_time = [](const std::string& dispatcher) {
    const Experiment e = scenario("stages: 1, replicas: 16, group: {expert: 16, dispatcher: " + dispatcher + "}", "",
                                  "{base: qwen3-30b-a3b, override: {sequence: 4096}}");
    const StageShape shape = e.plan.shape(1);
    return e.costs->passes(LayerId{4}, shape, DeviceTypeId{0}, 1).forward.expert.value;
  };
  const double each = expert_time("alltoall"), once = expert_time("per_node");
  // 8 experts of a token on 2 nodes: 8/2 copies leave with alltoall, 1 - 1/2^8 of one otherwise.
  const double rows = 4096.0 * 8 * 2048 * 2, card = 50e9 * kCardShare;
  CHECK(each == doctest::Approx(2 * (rows / 2 / card + 2 * kNodeLatency.value)));
  CHECK(once < each);
}

TEST_CASE("samples count by replica in the second version of scenarios, and by stage in the first") {
  const Experiment second = scenario("stages: 1, replicas: 4, micro_batch_size: 2", "", "gpt2-small");
  CHECK(second.plan.micro_batch_size == 8);
  CHECK(plan_experiment(second).plan.mini_batch == 8 * 16);
  const Experiment batch =
      scenario("stages: 1, replicas: 4, micro_batch_size: 2", "", "gpt2-small", "schedule: 1f1b, global_batch: 64");
  CHECK(batch.run.micro_batches == 8);
}

TEST_CASE("groups that cannot be are refused with the rule they break") {
  CHECK(refusal("stages: 1, group: {tensor: 3}") == "32 heads of the model cannot be divided by tensor 3");
  CHECK(refusal("stages: 1, group: {tensor: 16, within: node}") ==
        "a tensor group of 16 has to be inside a node, and a node has 8 devices");
  CHECK(refusal("stages: 1, group: {expert: 2}") == "the model has no experts, but a group divides them");
  CHECK(refusal("stages: 1, group: {context: 3}") == "8192 rows of the model cannot be divided by 2 x context = 6");
  CHECK(refusal("stages: 1, group: {tensor: 4, context: 4, context_type: a2a}") ==
        "8 key-value heads of the model cannot be divided by tensor x context = 16");
  CHECK(
      refusal("stages: 1, replicas: 2, group: {expert: 8}", "", "mixtral-8x7b") ==
      "expert 8 x expert_tensor 1 = 8 does not divide the 2 devices of stage 's0' (tensor 1 x context 1 x replicas 2)");
  CHECK(refusal("stages: 1, replicas: 3, group: {expert: 3}", "", "mixtral-8x7b") ==
        "8 experts of the model cannot be divided by expert 3");
  CHECK(refusal("stages: 1, replicas: 4, group: {tensor: 2, expert: 8}", "", "mixtral-8x7b") ==
        "experts get each row once, so the tensor group has to divide rows outside of products");
  CHECK(refusal("stages: 2, group: {tensor: 2}", "", "vgg16").starts_with("layer '"));
  CHECK(refusal("stages: 64, group: {tensor: 8}")
            .starts_with("64 stages of 8 devices each need 512 devices, but the cluster has 256"));
  CHECK(refusal("stages: 1, group: {tensor: 2}", "software: none\n") ==
        "only costs from the shapes of operations know groups and divided states");
  CHECK(refusal("stages: 1, shard: optimizer", "software: none\n") ==
        "only costs from the shapes of operations know groups and divided states");
}

}  // namespace stagecraft::groups_test
