// Simulations in which each device of a group has its instructions (run.detail: devices).

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/core/random.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::devices_test {
namespace {

std::string text(const std::string& plan, const std::string& run, const std::string& nics = "each",
                 const std::string& more = {}) {
  return fmt::format(R"(schema: scenario/2
model: {{base: qwen3-30b-a3b, override: {{layers: 4, key_value_heads: 16, sequence: 1024, experts: {{count: 32, active: 8, width: 768}}}}}}
cluster:
  generator: nvlink_pods
  types: {{gpu: {{peak: 500 TFLOP/s, memory: 800 GiB, memory_bandwidth: 3 TB/s}}}}
  nodes: [{{name: node, count: 8, gpus: 8, type: gpu, inside: nvswitch, nics: {}}}]
  links:
    nvlink: {{bandwidth: 300 GB/s, latency: 1 us}}
    nic: {{bandwidth: 50 GB/s, latency: 3 us}}
    pcie: {{bandwidth: 4000 GB/s, latency: 0 us}}
{}plan: {{planner: balanced, {}}}
run: {{{}}}
software: megatron-no-overlap
)",
                     nics, more, plan, run);
}

CompiledExperiment compiled(const std::string& scenario) {
  return compile(load_experiment(test::own_file("devices_test.yaml", scenario), {}));
}

/// A plan and how it runs.
std::pair<std::string, std::string> random_division(Rng& random) {
  const auto one_of = [&](auto... options) {
    const std::common_type_t<decltype(options)...> list[] = {options...};
    return list[random.integer(0, static_cast<int>(sizeof...(options)) - 1)];
  };
  const char* const schedule = one_of("1f1b", "gpipe", "zb-h1", "interleaved", "dualpipe");
  const bool has_pairs = std::string(schedule) == "dualpipe", has_loops = std::string(schedule) == "interleaved";
  const int tensor = one_of(1, 2, 4), context = one_of(1, 1, 2), replicas = one_of(1, 2, 4);
  const int stages = has_pairs ? 2 : has_loops ? one_of(2, 4) : one_of(1, 2), holders = context * replicas;
  const int expert = std::min(one_of(1, 2, 4, 8), tensor * holders);
  const std::string state = one_of("none", "optimizer", "gradients", "weights");
  const bool is_cut = state != "none" && holders > 1 && expert == 1 && !has_pairs && one_of(0, 1) == 1;
  return {fmt::format("stages: {}, replicas: {}, recompute: {}, group: {{tensor: {}, sequence: {}, context: {}, "
                      "context_type: {}, expert: {}, dispatcher: {}}}, shard: {{state: {}{}}}",
                      stages, replicas, one_of("layers", "none"), tensor, tensor > 1, context,
                      one_of("p2p", "all_gather", "a2a"), expert, one_of("alltoall", "per_node"), state,
                      is_cut ? fmt::format(", within: {}", holders / 2) : ""),
          fmt::format("schedule: {}, micro_batches: {}, iterations: 2", schedule, one_of(4, 8))};
}

}  // namespace

// Messages of all devices of a group take more of the links that they share with collectives than messages of the first
// one do. They share none on `ideal`, where collectives have their cost, and where each stage fills a node.
TEST_CASE("each device with its own instructions takes what the first of its group takes, on 50 random divisions") {
  Rng random(31, "devices");
  for (int trial = 0; trial < test::trials(50); ++trial) {
    const auto [plan, run_fields] = random_division(random);
    const std::string division = plan + "; " + run_fields;
    CAPTURE(division);
    for (const std::string collectives : {"cost", "flows"}) {
      const std::string fields = fmt::format("{}, collectives: {}", run_fields, collectives);
      const CompiledExperiment ops = compiled(text(plan, fields));
      const CompiledExperiment devices = compiled(text(plan, fields + ", detail: devices"));
      CHECK(devices.program.size() >= ops.program.size() * ops.program.group);
      const std::size_t ranks = ops.plan.device_count() / ops.plan.stage(StageId{0}).all_devices().size();
      const bool shares = collectives == "flows" && ranks > 1 && ops.plan.stage(StageId{0}).all_devices().size() != 8;
      for (const std::string backend : {"ideal", "fluid"}) {
        const Report folded = run(ops, backend).report, whole = run(devices, backend).report;
        if (shares && backend == "fluid") {
          CHECK(whole.length.value >= folded.length.value * (1 - 1e-9));
          CHECK(whole.length.value <= folded.length.value * 1.02);
          continue;
        }
        CHECK(whole.length.value == doctest::Approx(folded.length.value).epsilon(1e-9));
        CHECK(whole.energy.value == doctest::Approx(folded.energy.value).epsilon(1e-9));
        CHECK(fullest_device_memory(whole, *devices.experiment.cluster).value ==
              fullest_device_memory(folded, *ops.experiment.cluster).value);
      }
    }
  }
}

TEST_CASE("each device has its instructions, memory and messages") {
  const std::string plan = "stages: 2, replicas: 2, group: {tensor: 4, sequence: true}";
  const std::string run_fields = "schedule: 1f1b, micro_batches: 4, iterations: 1, collectives: flows";
  const CompiledExperiment ops = compiled(text(plan, run_fields));
  const CompiledExperiment devices = compiled(text(plan, run_fields + ", detail: devices"));
  CHECK(devices.program.transfers.size() == 4 * ops.program.transfers.size());
  CHECK(devices.program.group == 1);
  for (int d = 0; d < 16; ++d) CHECK(devices.program.memory[DeviceId{d}].total().value > 0);
  // Dense parameters are summed over two replicas, experts, which no group divides, over eight devices.
  for (const CollectiveCall& c : devices.program.collectives)
    CHECK((c.members == 4) == (c.purpose == Purpose::TensorActivation));
}

// Where a node has one card, the eight devices of a group send an eighth of a message each over it. Folded, the first
// one sends its eighth alone.
TEST_CASE("messages of the devices of a group share the card of their node") {
  const std::string run_fields = "schedule: gpipe, micro_batches: 4, iterations: 1";
  const auto longest_message = [&](const char* detail) {
    const CompiledExperiment c = compiled(text("stages: 2, group: {tensor: 8, sequence: true}",
                                               fmt::format("{}, detail: {}", run_fields, detail), "shared"));
    const Timeline t = execute(c, "fluid");
    double longest = 0;
    for (const Transfer& m : c.program.transfers) longest = std::max(longest, t.end[m.send] - t.start[m.send]);
    return longest;
  };
  const double bytes = 1024 * 2048 * 2 / 8, latency = 6e-6;  // A sample of Qwen3 in bf16; two cards on the way.
  const auto warns = [&](const char* detail) {
    const std::vector<std::string> notes = remarks(compiled(text(
        "stages: 2, group: {tensor: 8, sequence: true}", fmt::format("{}, detail: {}", run_fields, detail), "shared")));
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("stage over 'node0.nic' at the same time") != std::string::npos;
    });
  };
  CHECK(warns("ops"));
  CHECK_FALSE(warns("devices"));
  CHECK(longest_message("ops") == doctest::Approx(latency + bytes / 50e9).epsilon(1e-9));
  CHECK(longest_message("devices") == doctest::Approx(latency + 8 * bytes / 50e9).epsilon(1e-9));
}

// The stages are on different nodes: messages of fast members, which are early, share no link with collectives.
TEST_CASE("a group whose member is slow takes what a group of that speed takes") {
  const auto length = [](const std::string& changes, const char* detail) {
    const CompiledExperiment c = compiled(
        text("stages: 2, group: {tensor: 8, sequence: true}",
             fmt::format("schedule: 1f1b, micro_batches: 4, iterations: 2, collectives: flows, detail: {}", detail),
             "each", changes));
    return run(c, "fluid").report.length.value;
  };
  const std::string third = "  changes: [{devices: [node0.gpu2], from: 0 s, speed: 50 %}]\n";
  CHECK(length(third, "devices") == doctest::Approx(length(third, "ops")).epsilon(1e-9));
  // Folded, two members that change at the same time are refused: a group has one rate.
  const std::string two =
      "  changes: [{devices: [node0.gpu2], from: 0 s, speed: 50 %}, {devices: [node0.gpu3], from: 0 s, speed: 80 %}]\n";
  CHECK(length(two, "devices") == doctest::Approx(length(third, "devices")).epsilon(1e-9));
}

TEST_CASE("what cannot be unfolded is refused with a reason") {
  const CompiledExperiment c = compiled(
      text("stages: 1, group: {tensor: 2, sequence: true}", "schedule: 1f1b, micro_batches: 4, detail: devices"));
  CHECK(test::input_error_of([&] { execute(c, "cpu"); }).find("each device its instructions anyway") !=
        std::string::npos);
}

}  // namespace stagecraft::devices_test
