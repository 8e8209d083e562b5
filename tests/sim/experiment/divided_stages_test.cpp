// States divided within groups of replicas, and stages that are divided in their own ways.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "sim/cluster/collective_cost.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::divided_stages_test {
namespace {

Experiment scenario(const std::string& plan, const std::string& model = "llama-3-8b") {
  const std::string file = test::own_file(
      "divided_stages_test.yaml",
      "schema: scenario/2\nmodel: " + model + "\ncluster: superpod-h100-256\nplan: {planner: balanced, " + plan +
          "}\nrun: {schedule: 1f1b, micro_batches: 16, iterations: 3}\nsoftware: megatron-no-overlap\n");
  return load_experiment(file, {});
}

/// Stages that are written out on a cluster of nodes with eight devices.
Experiment explicit_stages(const std::string& stages, const std::string& more = {}) {
  const std::string file =
      test::own_file("divided_stages_test_explicit.yaml",
                     "schema: scenario/2\nmodel: llama-3-8b\ncluster: superpod-h100-256\nplan: {planner: explicit, " +
                         more + "stages: [" + stages +
                         "]}\nrun: {schedule: 1f1b, micro_batches: 8, iterations: 2}\nsoftware: megatron-no-overlap\n");
  return load_experiment(file, {});
}

/// "devices: [pod0.node0.gpu4, pod0.node0.gpu5]".
std::string gpus(int node, int first, int count) {
  std::string names;
  for (int g = first; g < first + count; ++g)
    names += fmt::format("{}pod0.node{}.gpu{}", g == first ? "" : ", ", node, g);
  return "devices: [" + names + "]";
}

Outcome outcome(const Experiment& e) { return run(compile(e), "ideal"); }

}  // namespace

TEST_CASE(
    "states divided within groups: a reduce-scatter inside, an all-reduce of the parts outside, a gather inside") {
  // 16 replicas of two devices: a node of eight has four of the devices with the same part of the parameters.
  const auto planned = [](const std::string& shard) {
    return scenario("stages: 1, replicas: 16, group: {tensor: 2, sequence: true}, shard: " + shard, "gpt2-medium");
  };
  const auto shape_of = [](const Experiment& e) { return plan_experiment(e).plan.stages.front().shape; };
  for (const int within : {2, 4, 8}) {
    CAPTURE(within);
    const Experiment e = planned(fmt::format("{{state: optimizer, within: {}}}", within));
    const CostRules& rules = *e.rules;
    const Accelerator& device = rules.accelerators[DeviceTypeId{0}];
    const GroupShape inner{within, std::min(within, 4)}, outer{16 / within, std::max(1, 4 / within)};
    const auto time = [&](CollectiveKind kind, const GroupShape& group, double bytes) {
      return (1 - rules.software.hides(Overlap::Gradients)) *
             collective_time(kind, group, Bytes{bytes}, device.collectives, rules.node.card).value;
    };
    const StageShape shape = shape_of(e);
    const double parameters = 1e9, gradient = rules.software.gradient_bytes * parameters;
    const Seconds sum = cost_of(sum_of_gradients({.dense = parameters}, shape, rules, DeviceTypeId{0}));
    CHECK((1 - rules.software.hides(Overlap::Gradients)) * sum.value ==
          doctest::Approx(time(CollectiveKind::ReduceScatter, inner, gradient) +
                          time(CollectiveKind::AllReduce, outer, gradient / within)));
    CHECK(exposed_of(gather_of_weights({.dense = parameters}, shape, rules, DeviceTypeId{0})).value ==
          doctest::Approx(time(CollectiveKind::AllGather, inner, 2 * parameters)));
    // Memory: each device has one of `within` parts of the states of the optimizer.
    const DeviceParameters counts = device_parameters(shape.layers, shape.degrees, *e.model);
    CHECK(stage_cost(*e.costs, shape, DeviceTypeId{0}, whole_samples(1)).memory.optimizer.value ==
          doctest::Approx(e.model->precision.optimizer * counts.dense / within));
  }
  // Gradients that are summed after each backward are summed over the copies once.
  StageShape each = shape_of(planned("{state: gradients, within: 4}"));
  const Experiment e = planned("gradients");
  const Accelerator& device = e.rules->accelerators[DeviceTypeId{0}];
  CHECK(sum_of_gradients({.dense = 1e9}, shape_of(e), *e.rules, DeviceTypeId{0}).empty());
  CHECK(cost_of(sum_of_gradients({.dense = 1e9}, each, *e.rules, DeviceTypeId{0})).value ==
        doctest::Approx(collective_time(CollectiveKind::AllReduce, {4, 1},
                                        Bytes{e.rules->software.gradient_bytes * 1e9 / 4}, device.collectives,
                                        e.rules->node.card)
                            .value));
}

TEST_CASE("states divided within all devices are those divided without a word, to the bit") {
  for (const std::string state : {"optimizer", "gradients", "weights"}) {
    CAPTURE(state);
    const std::string plan = "stages: 1, replicas: 8, group: {tensor: 2, sequence: true, context: 2}, shard: ";
    const Outcome whole = outcome(scenario(plan + state));
    const Outcome within = outcome(scenario(plan + "{state: " + state + ", within: 16}"));
    const Outcome half = outcome(scenario(plan + "{state: " + state + ", within: 8}"));
    CHECK(whole.report.period.value == within.report.period.value);
    CHECK(whole.report.devices[DeviceId{0}].memory.total.value ==
          within.report.devices[DeviceId{0}].memory.total.value);
    CHECK(half.report.devices[DeviceId{0}].memory.resident > whole.report.devices[DeviceId{0}].memory.resident);
  }
}

TEST_CASE("stages with groups of their own cost what they cost in a plan of such groups") {
  const std::string first = "{layers: [tok..l15], " + gpus(0, 0, 2), last = "{layers: [l16..loss], " + gpus(1, 0, 8);
  const PlannedExperiment mixed = plan_experiment(
      explicit_stages(first + ", group: {tensor: 2, sequence: true}}, " + last +
                      ", micro_batch_size: 1, replicas: 2, group: {tensor: 4, sequence: true}, shard: optimizer}"));
  const PlannedExperiment two =
                              plan_experiment(explicit_stages(first + "}, {layers: [l16..loss], " + gpus(0, 2, 2) + "}",
                                                              "group: {tensor: 2, sequence: true}, ")),
                          four = plan_experiment(
                              explicit_stages("{layers: [tok..l15], " + gpus(0, 0, 8) + "}, " + last + "}",
                                              "group: {tensor: 4, sequence: true}, shard: optimizer, "));
  const StageId s0{0}, s1{1};
  CHECK(mixed.costs.at(s0, 0).forward.value == two.costs.at(s0, 0).forward.value);
  CHECK(mixed.costs.at(s1, 0).backward.value == four.costs.at(s1, 0).backward.value);
  CHECK(mixed.costs.at(s1, 1).memory.optimizer.value == four.costs.at(s1, 1).memory.optimizer.value);
  CHECK(mixed.plan.stage(s1).replicas() == 2);
  CHECK(mixed.plan.stage(s1).micro_batch_size == 2);  // One sample of each replica.
  // A sample of 8192 rows of 4096 numbers in bf16: the two devices of the first stage send half of it each.
  CHECK(mixed.plan.edges.front().bytes.value == 8192.0 * 4096 * 2 / 2);
  CHECK(four.plan.edges.front().bytes.value == 8192.0 * 4096 * 2 / 4);
}

TEST_CASE("simulators agree on stages with different groups, and energy counts the devices of each") {
  const std::string stages = "{layers: [tok..l15], " + gpus(0, 0, 2) + ", group: {tensor: 2}}, {layers: [l16..loss], " +
                             gpus(0, 4, 4) + ", group: {tensor: 4, context: 1, sequence: true}, shard: none}";
  const CompiledExperiment c = compile(explicit_stages(stages));
  CHECK(c.program.group == 4);
  CHECK(c.program.group_sizes[DeviceId{0}] == 2);
  CHECK(c.program.group_sizes[DeviceId{4}] == 4);
  const double ideal = run(c, "ideal").report.length.value;
  CHECK(run(c, "fluid").report.length.value == doctest::Approx(ideal).epsilon(1e-9));
  CHECK(run(c, "simgrid").report.length.value == doctest::Approx(ideal).epsilon(1e-9));
  CHECK(c.program.work.devices == 6);
}

TEST_CASE("divisions of single stages that cannot be are refused with the rule they break") {
  const auto refused = [](const std::string& stages, const std::string& more = {}) {
    try {
      compile(explicit_stages(stages, more));
    } catch (const InputError& e) {
      return e.problems().front().path + ": " + e.problems().front().message;
    }
    return std::string("accepted");
  };
  const std::string first = "{layers: [tok..l15], " + gpus(0, 0, 2) + ", group: {tensor: 2}}, ";
  CHECK(refused(first + "{layers: [l16..loss], " + gpus(0, 4, 3) + ", group: {tensor: 3}}") ==
        "plan.stages[1].group: 32 heads of the model cannot be divided by tensor 3");
  CHECK(refused(first + "{layers: [l16..loss], " + gpus(0, 4, 3) + ", group: {tensor: 2}}") ==
        "plan.stages[1].devices: 3 devices cannot be divided into groups of 2");
  CHECK(refused(first + "{layers: [l16..loss], " + gpus(0, 4, 4) + ", group: {tensor: 2}, replicas: 4}") ==
        "plan.stages[1].replicas: 4 devices in groups of 2 make 2 replicas, not 4");
  CHECK(refused(first + "{layers: [l16..loss], " + gpus(0, 1, 4) + ", group: {tensor: 4}}") ==
        "plan.stages: pod0.node0.gpu1 is in different groups of stages 's0' and 's1'");
  CHECK(refused(first + "{layers: [l16..loss], devices: [pod0.node1.gpu0, pod0.node2.gpu0], group: {tensor: 2}}") ==
        "plan.stages[1].devices: the tensor group of pod0.node1.gpu0 has 1 device on a node, and costs count 2");
  CHECK(refused(first + "{layers: [l16..loss], " + gpus(0, 4, 4) +
                ", group: {tensor: 2}, shard: {state: weights, within: 3}}") ==
        "plan.stages[1].group: shard within 3 does not divide the 2 devices with the same part of the parameters of "
        "stage "
        "'s1' (replicas 2 x context 1)");
  CHECK(refused(first + "{layers: [l16..loss], " + gpus(0, 4, 4) + ", group: {order: tp-xx}}") ==
        "plan.group.order: 'tp-xx' is no order of ranks");
}

}  // namespace stagecraft::divided_stages_test
