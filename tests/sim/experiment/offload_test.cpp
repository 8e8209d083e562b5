// Host memory from a scenario: what changes nothing, the least shares that fit, groups of devices on shared links, and
// the optimizer on the host.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/experiment/run.hpp"
#include "sim/result/metrics.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::offload_experiment_test {
namespace {

constexpr const char* kScenario = R"(
schema: scenario/2
model: gpt2-medium
cluster:
  base: dgx-a100-x2
  host: {memory: 1 TiB, bandwidth: 2 TB/s, down: {bandwidth: 100 GB/s, latency: 10 us}, up: {bandwidth: 110 GB/s}}
plan: {planner: balanced, stages: 4, micro_batch_size: 4}
run: {schedule: 1f1b, micro_batches: 16}
software: megatron-no-overlap
)";

Experiment scenario(const std::vector<std::string>& sets) {
  return load_experiment(test::own_file("offload.yaml", kScenario), sets);
}

CompiledExperiment compiled(const std::vector<std::string>& sets) { return compile(scenario(sets)); }

struct Simulated {
  CompiledExperiment compiled;
  Outcome outcome;

  double metric(const char* name) const { return metric_value(name, view_of(compiled, outcome)); }
};

Simulated simulated(const std::vector<std::string>& sets, const std::string& backend = "ideal") {
  CompiledExperiment c = compiled(sets);
  Outcome o = run(c, backend);
  return {std::move(c), std::move(o)};
}

const char* problem_of(const std::vector<std::string>& sets, std::string& text) {
  try {
    compiled(sets);
  } catch (const Infeasible& e) {
    text = e.what();
  } catch (const InputError& e) {
    text = e.problems().front().message;
  }
  return text.c_str();
}

}  // namespace

TEST_CASE("a share of 0 % with early forwards, or nothing to offload, leaves the program as it is") {
  const std::string program = to_text(compiled({}).program);
  CHECK(to_text(compiled({"plan.offload={}"}).program) == program);
  CHECK(to_text(compiled({"plan.offload={activations: 0 %, late: false}"}).program) == program);
}

TEST_CASE("half of the stashes in host memory: bytes both ways, peaks and the text of the copies") {
  const Simulated whole = simulated({}), half = simulated({"plan.offload={activations: 50 %}"});
  const double stash = half.compiled.costs.at(StageId{0}, 0).memory.stash.value;
  CHECK(half.metric("offloaded_bytes") > 0);
  CHECK(half.metric("offloaded_bytes") == half.metric("fetched_bytes"));
  CHECK(half.metric("offloaded_bytes") <= 0.5 * 16 * (3 * stash + stash));
  CHECK(half.metric("peak_memory_bytes") < whole.metric("peak_memory_bytes"));
  CHECK(half.metric("peak_host_memory_bytes") > 0);
  CHECK(half.metric("host_link_utilisation") > 0);
  CHECK(half.metric("host_link_utilisation") <= 1);
  CHECK(half.metric("host_memory_stall") == 0);
  CHECK(half.metric("period_s") == doctest::Approx(whole.metric("period_s")).epsilon(1e-9));
  CHECK(to_text(half.compiled.program).find(" 0F3.D2H") != std::string::npos);
  CHECK(to_text(half.compiled.program).find(" 0B3.H2D") != std::string::npos);
}

TEST_CASE("selective takes the least shares that fit: no more than a hundredth of a stash above what does not") {
  const Simulated whole = simulated({"plan.stages=8"});
  const double peak = whole.metric("peak_memory_bytes");
  Experiment e = scenario({"plan.stages=8", "plan.offload={activations: selective}"});
  const Bytes stash = whole.compiled.costs.at(StageId{0}, 0).memory.stash;
  auto cluster = std::make_shared<Cluster>(*e.cluster);
  for (DeviceType& type : cluster->types) type.memory = Bytes{peak - 0.8 * stash.value}, type.memory_reserve = {};
  e.cluster = cluster;
  const CompiledExperiment c = compile(e);
  CHECK(c.peaks[DeviceId{0}].total <= cluster->types.front().memory);
  CHECK(c.peaks[DeviceId{0}].total > cluster->types.front().memory - 0.05 * stash);
  // The last ranks have room for all they keep.
  const auto moves = [&](int device) {
    return std::any_of(c.program.collectives.begin(), c.program.collectives.end(), [&](const CollectiveCall& call) {
      return call.purpose == Purpose::Stash && c.program.at(call.first).device.value == device;
    });
  };
  CHECK(moves(0));
  CHECK(!moves(7));
}

TEST_CASE(
    "devices of a group copy at the same time: on one link they share it, with an instruction for each device or for "
    "the group") {
  const std::vector<std::string> sets{
      "plan={planner: balanced, stages: 4, micro_batch_size: 4, group: {tensor: 2, sequence: true}, offload: "
      "{activations: 100 %}}",
      "run.micro_batches=8"};
  const auto with = [&](const std::vector<std::string>& more, const char* backend) {
    std::vector<std::string> joined = sets;
    joined.insert(joined.end(), more.begin(), more.end());
    return simulated(joined, backend);
  };
  const auto first_copy = [](const Simulated& s) {
    for (const CollectiveCall& c : s.compiled.program.collectives)
      if (c.purpose == Purpose::Stash) return s.outcome.timeline.end[c.first] - s.outcome.timeline.start[c.first];
    return 0.0;
  };
  const double alone = first_copy(with({}, "fluid")) - 10e-6;
  CHECK(first_copy(with({}, "ideal")) - 10e-6 == doctest::Approx(alone).epsilon(1e-9));
  for (const char* backend : {"fluid", "simgrid"}) {
    const Simulated folded = with({"cluster.host.gpus_on_a_link=2"}, backend);
    const Simulated each = with({"cluster.host.gpus_on_a_link=2", "run.detail=devices"}, backend);
    CHECK(first_copy(folded) - 10e-6 == doctest::Approx(2 * alone).epsilon(1e-9));
    CHECK(folded.metric("period_s") == doctest::Approx(each.metric("period_s")).epsilon(1e-9));
    CHECK(folded.metric("offloaded_bytes") == doctest::Approx(each.metric("offloaded_bytes")).epsilon(1e-9));
    CHECK(folded.metric("peak_host_memory_bytes") ==
          doctest::Approx(each.metric("peak_host_memory_bytes")).epsilon(1e-9));
  }
}

TEST_CASE("copies and messages to another node share PCIe where the cluster says so, which costs nothing alone") {
  const std::vector<std::string> sets{
      "plan={planner: balanced, stages: 8, micro_batch_size: 4, devices: [node0.gpu0, node1.gpu0, node0.gpu1, "
      "node1.gpu1, node0.gpu2, node1.gpu2, node0.gpu3, node1.gpu3], offload: {activations: 100 %}}",
      "cluster.host={memory: 1 TiB, down: {bandwidth: 25 GB/s}}"};
  const auto period = [&](const char* backend, const std::vector<std::string>& more) {
    std::vector<std::string> joined = sets;
    joined.insert(joined.end(), more.begin(), more.end());
    return simulated(joined, backend).metric("period_s");
  };
  const std::vector<std::string> shared{"cluster.host.pcie=26 GB/s"}, wide{"cluster.host.pcie=60 GB/s"};
  CHECK(period("ideal", shared) == period("ideal", {}));
  for (const char* backend : {"fluid", "simgrid"}) {
    CAPTURE(backend);
    CHECK(period(backend, shared) > 1.02 * period(backend, {}));
    CHECK(period(backend, wide) == doctest::Approx(period(backend, {})).epsilon(1e-9));
  }
  CHECK(period("simgrid", shared) == doctest::Approx(period("fluid", shared)).epsilon(1e-9));
  std::string text;
  CHECK(problem_of({"cluster.host.pcie=0 GB/s"}, text) == std::string("over a bus of 0 GB/s nothing arrives"));
}

TEST_CASE("the optimizer on the host: 8 bytes of each parameter less on the device, and there") {
  const Simulated usual = simulated({}), moved = simulated({"plan.offload={optimizer: {share: 100 %}}"});
  double total = 0, less = 0;
  for (const DeviceId d : usual.compiled.program.memory.ids()) {
    const ResidentMemory &before = usual.compiled.program.memory[d], &after = moved.compiled.program.memory[d];
    total += before.optimizer.value, less += (before.optimizer - after.optimizer).value;
  }
  CHECK(less == doctest::Approx(total * 8 / usual.compiled.model().precision.optimizer).epsilon(1e-12));
  CHECK(moved.metric("peak_host_memory_bytes") == doctest::Approx(less).epsilon(1e-9));
  CHECK(moved.metric("period_s") > usual.metric("period_s"));
}

TEST_CASE("inputs of modules have the bytes that their shapes say") {
  constexpr double kHidden = 4096, kKeys = 1024, kSequence = 1024, kExperts = 14336;
  const auto inputs = [](const Experiment& e, const std::string& module, Recomputation again) {
    const PlannedExperiment p = plan_experiment(e);
    StageShape shape = p.plan.stages.front().shape;
    shape.layers = {LayerId{2}};  // After the input and the embedding: the first layer.
    shape.recomputation = again;
    return module_inputs(p.model(), shape, whole_samples(1), {module}, &e.costs->rules()).value / (2 * kSequence);
  };
  const Experiment dense = scenario({"model={base: llama-3-8b, override: {sequence: 1024}}", "plan.stages=2"});
  const Experiment experts = scenario({"model={base: mixtral-8x7b, override: {sequence: 1024}}", "plan.stages=8"});
  for (const char* module : {"attn_norm", "qkv_linear", "attn_proj", "mlp_norm"})
    for (const Experiment* e : {&dense, &experts}) CHECK(inputs(*e, module, Recomputation::None) == kHidden);
  CHECK(inputs(dense, "core_attn", Recomputation::None) == kHidden + 2 * kKeys);
  CHECK(inputs(dense, "moe_act", Recomputation::None) == 0);
  CHECK(inputs(experts, "expert_fc1", Recomputation::None) == 2 * kHidden);
  CHECK(inputs(experts, "moe_act", Recomputation::None) == 2 * 2 * kExperts);
  CHECK(inputs(experts, "fused_group_mlp", Recomputation::None) == 2 * (kHidden + 3 * kExperts));
  // A backward recomputes what norms make, so it is not there; their own inputs are.
  CHECK(inputs(dense, "qkv_linear", Recomputation::Norms) == 0);
  CHECK(inputs(dense, "attn_norm", Recomputation::Norms) == kHidden);
  CHECK(inputs(experts, "moe_act", Recomputation::ExpertActivations) == 2 * 2 * kExperts);
}

TEST_CASE("modules move a part of each stash: all of it at most, and a share of that part") {
  const auto moved = [](const std::string& offload) {
    return simulated({"model={base: gpt2-medium, override: {flash_attention: true}}", "plan.offload=" + offload})
        .metric("offloaded_bytes");
  };
  const double whole = moved("{activations: 100 %, late: false}");
  const double attention = moved("{modules: [core_attn, attn_proj], late: false}");
  const double norms = moved("{modules: [attn_norm, mlp_norm], late: false}");
  CHECK(attention == doctest::Approx(4 * norms / 2).epsilon(1e-6));  // Q, K, V and the result have a width each.
  CHECK(moved("{modules: [core_attn, attn_proj, attn_norm, mlp_norm], late: false}") ==
        doctest::Approx(attention + norms).epsilon(1e-6));
  CHECK(attention + norms < whole);
  CHECK(moved("{activations: 25 %, modules: [core_attn], late: false}") ==
        doctest::Approx(0.25 * 3 * norms / 2).epsilon(1e-6));
  const Offload offload = *compiled({"plan.offload={modules: [core_attn]}"}).experiment.plan.offload;
  CHECK(to_text(offload) == "{activations: 100 %, modules: [core_attn]}");
  CHECK(short_text(offload) == "core_attn");
}

TEST_CASE("each later rank moves less of the inputs of modules") {
  const auto bytes_of = [](const Simulated& s, StageId stage) {
    for (const Buffer& b : s.compiled.program.buffers)
      if (b.kind == BufferKind::Host && s.compiled.program.at(b.allocated_by).stage == stage) return b.size.value;
    return 0.0;
  };
  const Simulated norms = simulated({"plan.offload={modules: [attn_norm, mlp_norm]}"});
  // Each layer keeps the input of either norm, of 1024 rows of 1024 numbers of two bytes for each of 4 samples.
  const Stage& second = norms.compiled.plan.stage(StageId{1});
  const double input = 4 * 1024.0 * 1024 * 2;
  CHECK(bytes_of(norms, StageId{1}) ==
        doctest::Approx(2 * input * static_cast<double>(second.shape.layers.size())).epsilon(1e-6));
  const Simulated half = simulated({"plan.offload={modules: [attn_norm, mlp_norm], activations: 50 %}"});
  CHECK(bytes_of(half, StageId{1}) == doctest::Approx(bytes_of(norms, StageId{1}) / 2).epsilon(1e-6));
  const Simulated less = simulated({"plan.offload={modules: [attn_norm, mlp_norm], less: 16 MiB}"});
  for (const int rank : {0, 1, 2})
    CHECK(bytes_of(less, StageId{rank}) ==
          doctest::Approx(bytes_of(norms, StageId{rank}) - rank * 16 * 0x1p20).epsilon(1e-6));
  // Everything that has a name is no more than the stash.
  const Simulated named =
      simulated({"plan.offload={modules: [attn_norm, qkv_linear, core_attn, attn_proj, mlp_norm]}"});
  CHECK(bytes_of(named, StageId{1}) < named.compiled.costs.at(StageId{1}, 0).memory.stash.value);
  CHECK(bytes_of(named, StageId{1}) > bytes_of(norms, StageId{1}));
}

TEST_CASE("what cannot be offloaded is refused") {
  std::string text;
  CHECK(std::string(problem_of({"cluster=dgx-a100-x2", "plan.offload={activations: 50 %}"}, text)) ==
        "the cluster does not describe the memory of the host of 'node0.gpu0'");
  CHECK(std::string(problem_of({"plan.offload={activations: 150 %}"}, text)) == "150 % is more than the whole");
  CHECK(std::string(problem_of({"plan.offload={activations: full}", "plan.recompute=full"}, text)) ==
        "stage 's0' recomputes all, so it keeps its input alone, which the recomputation reads before the backward");
  CHECK(std::string(problem_of({"plan.offload={activations: full}", "cluster.host.memory=100 MiB"}, text))
            .starts_with("the host 'node0' would keep "));
  CHECK(std::string(problem_of({"plan.offload={modules: [moe_act]}"}, text)) ==
        "no layer of the model has the module moe_act");
  CHECK(std::string(problem_of({"plan.offload={modules: [attn_norm]}", "plan.recompute=layers"}, text)) ==
        "stage 's0' recomputes layers, of which it keeps little more than their inputs");
  CHECK(std::string(problem_of({"plan.offload={activations: selective, less: 1 MiB}"}, text)) ==
        "the least shares that fit say how much of each stash moves, so less does not go with them");
}

}  // namespace stagecraft::offload_experiment_test
