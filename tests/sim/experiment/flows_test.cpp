// Collectives inside ops as messages on the links: what they take on an idle network, and what they take from others.

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/core/random.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::flows_test {
namespace {

// Device types without measured collectives, so that the links alone give the costs. Widths and rows are powers of two,
// so that every part of an array has whole bytes.
constexpr const char* kExperts =
    "{base: qwen3-30b-a3b, override: {layers: 2, key_value_heads: 16, sequence: 1024, vocabulary: 16384, "
    "experts: {count: 32, active: 8, width: 768}}}";
constexpr const char* kWide = "{base: gpt-1.3b, override: {layers: 2, sequence: 1024, vocabulary: 16384}}";
constexpr const char* kDense = "{base: llama-3-8b, override: {layers: 2, sequence: 1024, vocabulary: 16384}}";

std::string text(const std::string& plan, const std::string& run, const std::string& nics = "each",
                 const char* model = kExperts, int nodes = 2, int gpus = 8, const char* planner = "balanced") {
  return fmt::format(R"(schema: scenario/2
model: {}
cluster:
  generator: nvlink_pods
  types: {{gpu: {{peak: 500 TFLOP/s, memory: 800 GiB, memory_bandwidth: 3 TB/s}}}}
  nodes: [{{name: node, count: {}, gpus: {}, type: gpu, inside: nvswitch, nics: {}}}]
  links:
    nvlink: {{bandwidth: 300 GB/s, latency: 1 us}}
    nic: {{bandwidth: 50 GB/s, latency: 3 us}}
    pcie: {{bandwidth: 400 GB/s, latency: 0 us}}
plan: {{planner: {}, {}}}
run: {{{}}}
software: megatron-no-overlap
)",
                     model, nodes, gpus, nics, planner, plan, run);
}

CompiledExperiment compiled(const std::string& scenario) {
  return compile(load_experiment(test::own_file("flows_test.yaml", scenario), {}));
}

constexpr const char* kRun = "schedule: 1f1b, micro_batches: 4, iterations: 2";

double length(const CompiledExperiment& c, const char* backend) { return run(c, backend).report.length.value; }

struct Case {
  const char* plan;
  const char* model = kExperts;
};

const Case kCases[] = {
    {"stages: 1, group: {tensor: 4}", kDense},                                 // All-reduce in a node: ring.
    {"stages: 1, group: {tensor: 16}", kWide},                                 // Across nodes: hierarchical.
    {"stages: 1, group: {tensor: 4, sequence: true}"},                         // All-gather and reduce-scatter.
    {"stages: 1, group: {tensor: 16, sequence: true}"},                        // Both, hierarchical.
    {"stages: 1, group: {context: 2, context_type: all_gather}"},              // Ring in a node.
    {"stages: 1, group: {context: 16, context_type: all_gather}", kDense},     // Hierarchical.
    {"stages: 1, group: {context: 4, context_type: a2a}", kDense},             // Direct.
    {"stages: 1, group: {context: 4, context_type: p2p}", kDense},             // A ring behind attention.
    {"stages: 1, replicas: 8, group: {expert: 8}"},                            // Direct in a node.
    {"stages: 1, replicas: 16, group: {expert: 16}"},                          // Direct across nodes.
    {"stages: 1, replicas: 16, group: {expert: 16, dispatcher: per_node}"},    // One copy for each node.
    {"stages: 1, replicas: 8, group: {expert: 4, expert_tensor: 2}"},          // All-gather over expert_tensor.
    {"stages: 1, replicas: 16"},                                               // Sums of gradients.
    {"stages: 1, replicas: 4, group: {tensor: 4}, shard: optimizer", kDense},  // Reduce-scatter and all-gather.
    {"stages: 1, replicas: 16, shard: gradients", kDense},                     // A sum after each backward.
    {"stages: 1, replicas: 16, shard: weights", kDense},                       // Gathers before each pass, too.
    {"stages: 1, replicas: 4, group: {tensor: 4}, shard: weights", kDense},    // A tensor group divides them first.
    {"stages: 1, replicas: 8, group: {expert: 4}, shard: weights"},            // Experts over two, the rest over eight.
    {"stages: 2, replicas: 8, shard: {state: weights, reshard: false}", kDense},
    {"stages: 2, replicas: 8, shard: weights, recompute: layers", kDense},
    {"stages: 1, replicas: 16, shard: {state: optimizer, within: 4}", kDense},  // Four copies, two on each node.
    {"stages: 1, replicas: 16, shard: {state: optimizer, within: 8}", kDense},  // A copy on each node.
    {"stages: 1, replicas: 16, shard: {state: gradients, within: 8}", kDense},
    {"stages: 1, replicas: 16, shard: {state: weights, within: 8}", kDense},
    {"stages: 1, replicas: 8, group: {tensor: 2, sequence: true}, shard: {state: optimizer, within: 4}"},
    {"stages: 1, replicas: 4, group: {context: 4, context_type: all_gather}, shard: {state: weights, within: 8}",
     kDense},
    {"stages: 1, replicas: 16, group: {expert: 4}, shard: {state: optimizer, within: 8}"},  // Experts over two.
    {"stages: 1, replicas: 16, group: {expert: 4}, shard: {state: weights, within: 4}"},
    {"stages: 2, replicas: 8, shard: {state: weights, within: 4, reshard: false}", kDense},
    {"stages: 1, replicas: 2, group: {tensor: 8, sequence: true, within: node}, shard: optimizer", kDense},
    {"stages: 2, replicas: 2, group: {tensor: 2, sequence: true, context: 2, expert: 8, context_type: all_gather}"}};

}  // namespace

TEST_CASE("on an idle network collectives as messages take their cost") {
  for (const auto& [plan, model] : kCases) {
    const std::string name = plan;
    CAPTURE(name);
    const std::string single = fmt::format("{}, collectives: ", kRun);
    const double cost = length(compiled(text(plan, single + "cost", "each", model)), "ideal");
    const CompiledExperiment flows = compiled(text(plan, single + "flows", "each", model));
    CHECK(length(flows, "ideal") == doctest::Approx(cost).epsilon(1e-9));
    CHECK(length(flows, "fluid") == doctest::Approx(cost).epsilon(1e-9));
    CHECK(length(flows, "simgrid") == doctest::Approx(cost).epsilon(1e-9));
  }
}

TEST_CASE("collectives count under their class, and only what nothing hides") {
  const std::string plan = "stages: 1, replicas: 8, group: {tensor: 2, sequence: true, expert: 4}";
  const auto classes = [&](const char* collectives) {
    return run(compiled(text(plan, fmt::format("{}, collectives: {}", kRun, collectives))), "ideal").report.time.spent;
  };
  const TimeByClass cost = classes("cost"), flows = classes("flows");
  CHECK(cost.tensor.value > 0);
  CHECK(flows.tensor.value == doctest::Approx(cost.tensor.value).epsilon(1e-9));
  CHECK(flows.expert.value == doctest::Approx(cost.expert.value).epsilon(1e-9));
  CHECK(flows.data.value == doctest::Approx(cost.data.value).epsilon(1e-9));
  CHECK(flows.products.value == doctest::Approx(cost.products.value).epsilon(1e-9));
}

// Bubble, busy time and energy do not depend on whether a collective is a part of an op or an instruction.
TEST_CASE("on an idle network every class of time is the same with collectives as costs and as messages") {
  for (const auto& each : kCases)
    for (const char* backend : {"ideal", "fluid", "simgrid"}) {
      const std::string name = each.plan;
      CAPTURE(name);
      CAPTURE(backend);
      const auto report_of = [&](const char* collectives) {
        const std::string fields = fmt::format("{}, collectives: {}", kRun, collectives);
        return run(compiled(text(each.plan, fields, "each", each.model)), backend).report;
      };
      const Report cost = report_of("cost"), flows = report_of("flows");
      const double period = cost.period.value;
      const auto same = [&](Seconds a, Seconds b) { return std::abs((a - b).value) <= 1e-9 * period; };
      for (const TimeClass& one : time_class_list()) {
        CAPTURE(one.name);
        CHECK(same(flows.time.spent.*one.part, cost.time.spent.*one.part));
        for (const DeviceId d : cost.devices.ids())
          CHECK(same(flows.devices[d].time.spent.*one.part, cost.devices[d].time.spent.*one.part));
      }
      CHECK(same(flows.time.bubble, cost.time.bubble));
      CHECK(same(flows.time.unexplained, {}));
      CHECK(flows.bubble == doctest::Approx(cost.bubble).epsilon(1e-9));
      CHECK(flows.steady_bubble == doctest::Approx(cost.steady_bubble).epsilon(1e-9));
      CHECK(flows.energy.value == doctest::Approx(cost.energy.value).epsilon(1e-9));
      for (const DeviceId d : cost.devices.ids()) {
        CHECK(same(flows.devices[d].time.bubble, cost.devices[d].time.bubble));
        CHECK(same(flows.devices[d].busy, cost.devices[d].busy));
        CHECK(flows.devices[d].utilisation == doctest::Approx(cost.devices[d].utilisation).epsilon(1e-9));
      }
    }
}

// With one stage no device waits for another stage, so all that shared cards add is exposed collectives.
TEST_CASE("what collectives take longer on shared links is exposed collectives, and no bubble") {
  for (const char* plan :
       {"stages: 1, replicas: 4, group: {tensor: 4}, shard: optimizer",
        "stages: 1, replicas: 2, group: {tensor: 8, sequence: true, within: node}, shard: optimizer"}) {
    CAPTURE(plan);
    const auto report_of = [&](const char* nics) {
      return run(compiled(text(plan, fmt::format("{}, collectives: flows", kRun), nics, kDense)), "fluid").report;
    };
    const Report alone = report_of("each"), shared = report_of("shared");
    const double more = (shared.period - alone.period).value;
    CHECK(more > 0.01 * alone.period.value);
    CHECK((shared.time.spent.collectives() - alone.time.spent.collectives()).value ==
          doctest::Approx(more).epsilon(1e-6));
    CHECK(shared.time.compute().value == doctest::Approx(alone.time.compute().value).epsilon(1e-9));
    CHECK(shared.time.bubble.value <= 1e-9 * shared.period.value);
  }
}

TEST_CASE("the equal collectives of an op as one instruction take what they take one by one") {
  for (const auto& [plan, model] : kCases) {
    const std::string name = plan;
    CAPTURE(name);
    const std::string run_fields = fmt::format("{}, collectives: flows, detail: ", kRun);
    const CompiledExperiment ops = compiled(text(plan, run_fields + "ops", "each", model));
    const CompiledExperiment layers = compiled(text(plan, run_fields + "layers", "each", model));
    CHECK(ops.program.size() <= layers.program.size());
    CHECK(length(ops, "ideal") == doctest::Approx(length(layers, "ideal")).epsilon(1e-9));
    CHECK(length(ops, "fluid") == doctest::Approx(length(layers, "fluid")).epsilon(1e-9));
  }
}

TEST_CASE("folded and unfolded collectives take the same time on 50 random divisions") {
  Rng random(20, "divisions of flows_test");
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[random.integer(0, static_cast<int>(values.size()) - 1)];
  };
  for (int trial = 0; trial < 50; ++trial) {
    const int tensor = one_of({1, 2}), context = one_of({1, 2}), replicas = one_of({2, 4});
    const int expert = std::min(one_of({1, 2, 4}), tensor * context * replicas);
    const std::string plan = fmt::format(
        "stages: {}, replicas: {}, group: {{tensor: {}, sequence: {}, context: {}, expert: {}, context_type: {}}}, "
        "shard: {}",
        tensor * context * replicas <= 8 ? 2 : 1, replicas, tensor, tensor > 1, context, expert,
        one_of({0, 1}) == 0 ? "all_gather" : "a2a", one_of({0, 1}) == 0 ? "none" : "optimizer");
    CAPTURE(plan);
    const auto seconds = [&](const char* detail, const char* backend) {
      return length(compiled(text(plan, fmt::format("{}, collectives: flows, detail: {}", kRun, detail))), backend);
    };
    CHECK(seconds("ops", "ideal") == doctest::Approx(seconds("layers", "ideal")).epsilon(1e-9));
  }
}

namespace {

/// A tensor group on each of N nodes: G rings of N devices. Each of their 2 (N - 1) phases moves S/N bytes (Patarasuk
/// and Yuan 2009), and all G rings send them over the one card of a node.
void check_rings(int gpus, int nodes, const char* backend) {
  CAPTURE(gpus);
  CAPTURE(nodes);
  CAPTURE(backend);
  const CompiledExperiment c =
      compiled(text(fmt::format("stages: 1, replicas: {}, group: {{tensor: {}}}", nodes, gpus),
                    fmt::format("{}, collectives: flows", kRun), "shared", gpus > 8 ? kWide : kDense, nodes, gpus));
  const double bytes = c.costs.at(StageId{0}, 0).collectives->gradient_sum.at(0).bytes.value;
  const LinkRate card = LinkTable(*c.experiment.cluster).link(DeviceId{0}, DeviceId{gpus});
  REQUIRE(card.bandwidth.value == 50e9);
  const auto sum_of = [&](int rings) { return 2 * (nodes - 1) * (rings * bytes / nodes / 50e9 + card.latency.value); };
  const Timeline timeline = execute(c, backend), ideal = execute(c, "ideal");
  int sums = 0;
  for (const InstructionId n : c.program.instructions.ids()) {
    const Instruction& i = c.program.at(n);
    if (i.kind != InstructionKind::Collective) continue;
    const double lasted = timeline.end[n] - timeline.start[n], alone = ideal.end[n] - ideal.start[n];
    if (c.program.collective(i).purpose != Purpose::GradientSum) {  // On NVLink, which no other message uses.
      CHECK(lasted == doctest::Approx(alone).epsilon(1e-9));
      continue;
    }
    // Parts of the array are whole bytes.
    CHECK(lasted == doctest::Approx(sum_of(gpus)).epsilon(1e-8));
    CHECK(alone == doctest::Approx(sum_of(1)).epsilon(1e-8));
    ++sums;
  }
  CHECK(sums == 2 * nodes);  // Two iterations.
}

}  // namespace

TEST_CASE("data-parallel rings share the card of a node, and tensor groups inside do not notice") {
  for (const auto& [gpus, nodes] : {std::pair{8, 2}, {2, 2}, {16, 2}, {4, 4}, {8, 3}, {2, 8}}) {
    check_rings(gpus, nodes, "fluid");
    if (gpus * nodes <= 16) check_rings(gpus, nodes, "simgrid");
  }
}

// Each stage has a device on both nodes, and both stages share the card of each node. After its last backward stage 1
// sums S bytes of gradients in a ring of two: two latencies, and twice S/2 bytes each way. Stage 0 exchanges E bytes of
// rows of experts meanwhile, which lasts longer. Max-min fairness gives both half of the card while both send.
TEST_CASE("an exchange of experts and a sum of gradients divide the card that both use") {
  const CompiledExperiment c = compiled(text(
      "group: {expert: 2}, stages: [{layers: [tok..l0], devices: [node0.gpu0, node1.gpu0], micro_batch_size: 16}, "
      "{layers: [l1..loss], devices: [node0.gpu1, node1.gpu1], micro_batch_size: 16}]",
      "schedule: 1f1b, micro_batches: 4, iterations: 1, collectives: flows", "shared", kExperts, 2, 2, "explicit"));
  const double rate = 50e9, latency = LinkTable(*c.experiment.cluster).link(DeviceId{0}, DeviceId{2}).latency.value;
  for (const char* backend : {"fluid", "simgrid"}) {
    CAPTURE(backend);
    const Timeline t = execute(c, backend);
    InstructionId sum, exchange;
    for (const InstructionId n : c.program.instructions.ids()) {
      const Instruction& i = c.program.at(n);
      if (i.kind != InstructionKind::Collective) continue;
      const CollectiveCall& one = c.program.collective(i);
      if (one.purpose == Purpose::GradientSum && i.stage == StageId{1}) sum = n;
      if (one.purpose == Purpose::ExpertActivation && i.stage == StageId{0} && one.op == 'B' && one.micro_batch == 3)
        exchange = n;
    }
    REQUIRE(sum.valid());
    REQUIRE(exchange.valid());
    const CollectiveCall &ring = c.program.collective(c.program.at(sum)),
                         &rows = c.program.collective(c.program.at(exchange));
    REQUIRE(c.program.phases_of(rows).size() == 1);
    const auto gradients = static_cast<double>(c.program.shape(ring).bytes);
    const auto exchanged = static_cast<double>(rows.bytes(c.program.phases_of(rows)[0]));
    const double sum_flows = t.start[sum] + 2 * latency, exchange_flows = t.start[exchange] + rows.repeats() * latency;
    REQUIRE(sum_flows < exchange_flows);
    const double sum_end = exchange_flows + 2 * (gradients / rate - (exchange_flows - sum_flows));
    CHECK(t.end[sum] == doctest::Approx(sum_end).epsilon(1e-9));
    const double rest = exchanged - rate / 2 * (sum_end - exchange_flows);
    REQUIRE(rest > 0);
    CHECK(t.end[exchange] == doctest::Approx(sum_end + rest / rate).epsilon(1e-9));
  }
}

TEST_CASE("collectives of stages with groups of their own take their cost as messages on an idle network") {
  // The stages are on different nodes, so messages between them share no link with their collectives.
  const char* const kStages[] = {
      "stages: [{layers: [tok..l0], devices: [node0.gpu0, node0.gpu1], group: {tensor: 2}}, {layers: [l1..loss], "
      "devices: [node1.gpu4, node1.gpu5, node1.gpu6, node1.gpu7], group: {tensor: 4}}]",
      "stages: [{layers: [tok..l0], devices: [node0.gpu0, node0.gpu1], group: {tensor: 2, sequence: true}, "
      "micro_batch_size: 2}, {layers: [l1..loss], devices: [node1.gpu0, node1.gpu1, node1.gpu2, node1.gpu3], group: "
      "{tensor: 2, sequence: true}, replicas: 2, shard: optimizer, micro_batch_size: 1}]",
      "stages: [{layers: [tok..l0], devices: [node0.gpu0, node0.gpu1], group: {context: 2, context_type: all_gather}, "
      "shard: gradients}, {layers: [l1..loss], devices: [node1.gpu0, node1.gpu1, node1.gpu2, node1.gpu3], group: "
      "{tensor: 4, sequence: true}}]"};
  for (const char* stages : kStages) {
    CAPTURE(stages);
    const auto lengths = [&](const char* collectives, const char* backend) {
      return length(compiled(text(stages, fmt::format("{}, collectives: {}", kRun, collectives), "each", kDense, 2, 8,
                                  "explicit")),
                    backend);
    };
    for (const char* backend : {"ideal", "fluid", "simgrid"})
      CHECK(lengths("flows", backend) == doctest::Approx(lengths("cost", backend)).epsilon(1e-9));
  }
}

// One stage runs forward and backward of each micro-batch in turn, and an op waits for the gathers of the op before it.
TEST_CASE("gathers of weights that a stack starts ahead run next to the computation") {
  std::string scenario =
      text("stages: 1, replicas: 16, shard: weights", fmt::format("{}, collectives: flows", kRun), "each", kDense);
  scenario.replace(scenario.find("megatron-no-overlap"), 19, "torchtitan");
  const CompiledExperiment c = compiled(scenario);
  const StageCollectives& s = *c.costs.at(StageId{0}, 0).collectives;
  const auto wire = [](const Collectives& list) {
    double sum = 0;
    for (const Collective& one : list) {
      CHECK(one.exposed_share() == 0);
      sum += one.rounds * one.cost.value;
    }
    return sum;
  };
  const OpTimes computation = computation_times(c.costs.at(StageId{0}, 0));
  const double forward = std::max(computation.forward.value, wire(s.passes.forward));
  const double backward = std::max(computation.backward.value, wire(s.passes.backward));
  CHECK(wire(s.passes.backward) > wire(s.passes.forward));
  CHECK(length(c, "ideal") == doctest::Approx(2 * (4 * (forward + backward) + computation.update.value)).epsilon(1e-9));
}

TEST_CASE("what cannot be played as messages is refused with a reason") {
  const auto refusal = [](const std::string& plan, const std::string& more) {
    try {
      compiled(text(plan, fmt::format("{}, collectives: flows{}", kRun, more), "each", kDense));
    } catch (const InputError& e) {
      return e.problems().front().message;
    }
    return std::string("accepted");
  };
  CHECK(refusal("stages: 1, group: {tensor: 4}", ", overlap: false") ==
        "collectives inside ops are played as messages only with run.overlap: true");
}

}  // namespace stagecraft::flows_test
