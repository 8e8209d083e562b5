// Stages on groups of devices, from a scenario to its times and its memory.

#include <doctest/doctest.h>

#include <map>

#include <fmt/core.h>

#include "sim/cluster/collective_cost.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::groups_test {
namespace {

Experiment scenario(const std::string& plan, const std::string& more = {}, const std::string& model = "llama-3-8b",
                    const std::string& run = "schedule: 1f1b, micro_batches: 16, iterations: 3") {
  const std::string file =
      test::own_file("groups_test.yaml", "schema: scenario/2\nmodel: " + model +
                                             "\ncluster: superpod-h100-256\nplan: {planner: balanced, " + plan +
                                             "}\nrun: {" + run + "}\n" + more);
  return load_experiment(file, {});
}

Outcome outcome(const Experiment& e) { return run(compile(e), "ideal"); }

std::string refusal(const std::string& plan, const std::string& more = {}, const std::string& model = "llama-3-8b") {
  try {
    plan_experiment(scenario(plan, more, model));
  } catch (const InputError& e) {
    return e.problems().front().message;
  } catch (const Infeasible& e) {
    return full_message(e.problem());
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a group simulated by its collectives takes what a closed form said") {
  struct Case {
    int replicas, context, tensor;
    double seconds;  ///< From the last commit that had the closed form.
  };
  for (const Case& c : {Case{1, 1, 4, 4.464458}, Case{1, 1, 8, 2.884790}, Case{1, 2, 4, 2.387614},
                        Case{4, 1, 8, 3.017316}, Case{2, 4, 8, 1.146441}}) {
    CAPTURE(c.tensor);
    CAPTURE(c.context);
    const Experiment e =
        scenario(fmt::format("stages: 1, replicas: {}, group: {{tensor: {}, sequence: true, context: {}}}", c.replicas,
                             c.tensor, c.context),
                 "software: {base: megatron-no-overlap, launch: 10 us}\n");  // The launch that the formula had.
    CHECK(outcome(e).report.period.value == doctest::Approx(c.seconds).epsilon(0.01));
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

TEST_CASE("replicas, stages and groups divide the memory of a device as a closed form did") {
  const Experiment e = scenario("stages: 4, replicas: 2, group: {tensor: 4, sequence: true}, shard: optimizer",
                                "software: megatron-no-overlap\n");
  Bytes fullest;
  for (const DeviceReport& d : outcome(e).report.devices) fullest = std::max(fullest, d.memory.total);
  CHECK(fullest.value == doctest::Approx(1.60547e10).epsilon(0.02));  // From the last commit that had the closed form.
}

TEST_CASE("a group of one costs what its stack says without collectives") {
  const Experiment e = scenario("stages: 4");
  const Outcome o = outcome(e);
  CHECK(o.report.time.spent.tensor.value == 0);
}

TEST_CASE("the parts of an iteration sum to its length, and the parts of a pass to its time, to 1e-9") {
  struct Case {
    const char *plan, *run;
  };
  const Case cases[] = {
      {"stages: 4, replicas: 2, group: {tensor: 4, sequence: true}, shard: optimizer",
       "schedule: 1f1b, micro_batches: 8, iterations: 2"},
      {"stages: 2, replicas: 4, group: {tensor: 4, context: 2}", "schedule: 1f1b, micro_batches: 4, iterations: 1"},
      {"stages: 4, placement: loop, recompute: layers, group: {tensor: 8}",
       "schedule: interleaved, micro_batches: 8, iterations: 1"}};
  for (const Case& each : cases)
    for (const char* backend : {"ideal", "fluid"}) {
      CAPTURE(each.plan);
      CAPTURE(backend);
      const CompiledExperiment c = compile(scenario(each.plan, "software: megatron-2021\n", "llama-3-8b", each.run));
      const Report report = run(c, backend).report;
      const TimeByClass& spent = report.time.spent;
      double sum = (report.time.bubble + report.time.unexplained).value;
      for (const TimeClass& part : time_class_list()) sum += (spent.*part.part).value;
      CHECK(sum == doctest::Approx(report.period.value).epsilon(1e-9));
      CHECK(spent.optimizer.value > 0);
      CHECK(spent.messages.value > 0);
      CHECK((spent.data.value > 0) == (c.plan.stages.front().shape.degrees.replicas > 1));
      for (const InstructionId n : c.program.instructions.ids()) {
        const Instruction& i = c.program.at(n);
        if (i.is_compute())
          CHECK(c.program.parts[i.stage].parts(i.kind).total().value ==
                doctest::Approx(i.duration.value).epsilon(1e-9));
      }
    }
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
    return e.costs->passes(LayerId{4}, shape, DeviceTypeId{0}, whole_samples(1)).forward.time.expert.value;
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

TEST_CASE("an order that takes a tensor group out of its node takes longer by its collectives alone") {
  const auto planned = [](const std::string& order) {
    return scenario("stages: 2, replicas: 8, group: {tensor: 8, sequence: true, order: " + order + "}",
                    "software: megatron-no-overlap\n");
  };
  const Experiment inside = planned("tp-cp-ep-dp-pp"), across = planned("dp-cp-ep-tp-pp");
  // Nodes have eight devices: the tensor group is one of them, or has one device in each of eight.
  const StageShape shape = across.plan.shape(2);
  const GroupShape group = tensor_group(shape.degrees, across.rules->node);
  CHECK(group.local() == 1);
  CHECK(data_group(shape.degrees, across.rules->node).local() == 8);
  CHECK(tensor_group(inside.plan.shape(2).degrees, inside.rules->node).local() == 8);
  CHECK(data_group(inside.plan.shape(2).degrees, inside.rules->node).local() == 1);
  // A layer gathers and scatters its input twice in the forward. This stack hides a share of that.
  const Accelerator& device = across.rules->accelerators[DeviceTypeId{0}];
  const Bytes input{8192.0 * 4096 * 2};
  Seconds expected;
  for (const CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter})
    expected += 2 * collective_time(kind, group, input, device.collectives, across.rules->node.card);
  expected = (1 - across.rules->software.hides(Overlap::Tensor)) * expected;
  CHECK(across.costs->passes(LayerId{2}, shape, DeviceTypeId{0}, whole_samples(1)).forward.time.tensor.value ==
        doctest::Approx(expected.value));

  const Outcome near = outcome(inside), far = outcome(across);
  CHECK(far.report.period > near.report.period);
  CHECK(far.report.time.spent.tensor > near.report.time.spent.tensor);
  CHECK(far.report.time.spent.data < near.report.time.spent.data);
  CHECK(far.report.time.spent.products.value == doctest::Approx(near.report.time.spent.products.value));
}

TEST_CASE("an order with stages first has neighbors send to each other inside a node") {
  const auto sends = [](const std::string& order) {
    const PlannedExperiment p =
        plan_experiment(scenario("stages: 8, replicas: 8, group: {tensor: 2, order: " + order + "}"));
    const auto host = [&](int stage) {
      return p.experiment.cluster->devices[p.plan.stages[StageId{stage}].leaders.front()].host;
    };
    return host(0) == host(1);
  };
  CHECK(sends("pp-tp-cp-ep-dp"));
  CHECK_FALSE(sends("tp-cp-ep-dp-pp"));
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
  CHECK(refusal("stages: 1, group: {tensor: 2, order: tp-xp}") == "'tp-xp' is no order of ranks");
  CHECK(refusal("stages: 1, group: {tensor: 2, order: tp-dp-tp}") == "'tp-dp-tp' is no order of ranks");
  CHECK(refusal("stages: 2, replicas: 2, group: {tensor: 2, order: tp-dp}") ==
        "the order leaves out pp, which has 2 ranks");
  CHECK(refusal("stages: 1, replicas: 8, group: {expert: 8, order: tp-dp-pp}", "", "mixtral-8x7b") ==
        "the order leaves out ep, which has 8 ranks");
  CHECK(refusal("stages: 1, replicas: 2, group: {tensor: 8, within: node, order: dp-tp-cp-ep-pp}") ==
        "a tensor group of 8, whose members are 2 devices apart, has to be inside a node, and a node has 8 devices");
  CHECK(refusal("stages: 2, replicas: 4, group: {tensor: 2, sequence: true, expert: 4, order: tp-cp-ep-pp-dp}", "",
                "mixtral-8x7b") ==
        "with order tp-cp-ep-pp-dp the next stage is 2 devices further for dense layers, and 4 devices for experts");
  CHECK(refusal("stages: 1, replicas: 8, shard: {state: optimizer, within: 3}") ==
        "shard within 3 does not divide the 8 devices with the same part of the parameters of stage 's0' (replicas 8 x "
        "context 1)");
  CHECK(
      refusal("stages: 1, replicas: 8, shard: {state: optimizer, within: 16}") ==
      "shard within 16 does not divide the 8 devices with the same part of the parameters of stage 's0' (replicas 8 x "
      "context 1)");
  CHECK(
      refusal("stages: 1, replicas: 8, group: {expert: 8}, shard: {state: optimizer, within: 4}", "", "mixtral-8x7b") ==
      "shard within 4 makes 2 copies of the states, which do not divide the 1 device with the same experts of stage "
      "'s0'");
}

TEST_CASE("a planner without groups says so, in its own plan and in the place of another") {
  const Experiment grouped = scenario("stages: 2, replicas: 2, group: {tensor: 2}");
  const Experiment sharded = scenario("stages: 2, replicas: 2, shard: optimizer");
  int without = 0;
  for (const PlannerDef* def : planners::catalog()) {
    CAPTURE(def->name);
    const bool takes_groups = def->fields->find("group");
    CHECK(takes_groups == (def->fields->find("shard") != nullptr));
    if (takes_groups) continue;
    ++without;
    for (const bool group : {true, false}) {
      const std::string expected = fmt::format("the planner '{}' {}", def->name,
                                               group ? "gives each replica of a stage one device, not a group of them"
                                                     : "has every device keep whole states, and divides none");
      const std::vector<std::string> sets = {
          fmt::format("plan={{planner: {}, {}}}", def->name, group ? "group: {tensor: 2}" : "shard: weights")};
      const auto message = [](auto&& act) {
        try {
          act();
        } catch (const InputError& e) {
          return e.problems().front().message;
        }
        return std::string("accepted");
      };
      CHECK(message([&] { load_experiment("examples/llama-3-8b-4x8", sets); }) == expected);
      const Experiment& e = group ? grouped : sharded;
      CHECK(message([&] { plan_spec_for(*def, e.plan, 4, *e.cluster); }) == expected);
    }
  }
  CHECK(without == 9);  // balanced, explicit and layout are the others of 12.
}

}  // namespace stagecraft::groups_test
