// Bytes of a device under 1F1B and GPipe, by the closed forms of Korthikanti et al., MLSys 2023: stage k of p keeps p -
// k micro-batches (GPipe all m) of 34 s b h + 5 a s^2 b, of 34 s b h and one inside of an attention, or of its input
// and one whole stash.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/experiment/run.hpp"

namespace stagecraft::selective_memory_test {
namespace {

constexpr double s = 64, b = 2, h = 32, a = 4;
constexpr int p = 4, m = 6;
constexpr double kInput = 2 * s * b * h, kKept = 34 * s * b * h, kInside = 5 * a * s * s * b;

/// A Transformer layer on each device.
CompiledExperiment pipeline(const std::string& schedule, const std::string& recompute) {
  std::string stages;
  for (int k = 0; k < p; ++k)
    stages += std::string(k > 0 ? ", " : "") + "{layers: [" + (k == 0 ? "tok..l0" : "l" + std::to_string(k)) +
              (k == p - 1 ? "..loss" : "") + "], device: thread" + std::to_string(k) +
              ", micro_batch_size: 2, recompute: " + recompute + "}";
  const Experiment scenario = load_experiment(
      "examples/cpu-transformer",
      {"model={builder: transformer, kind: gpt, layers: 4, hidden: 32, heads: 4, sequence: 64, vocabulary: 50, "
       "precision: mixed, attention_dropout: true}",
       "plan={planner: explicit, stages: [" + stages + "]}", "run.schedule=" + schedule, "run.iterations=1",
       "run.micro_batches=" + std::to_string(m)});
  return compile(scenario);
}

IdVector<DeviceId, DeviceReport> devices(const std::string& schedule, const std::string& recompute) {
  return run(pipeline(schedule, recompute), "ideal").report.devices;
}

}  // namespace

TEST_CASE("a device keeps all activations, those outside attention, or inputs alone, by recomputation") {
  for (const std::string schedule : {"1f1b", "gpipe"}) {
    CAPTURE(schedule);
    const auto none = devices(schedule, "none"), selective = devices(schedule, "selective"),
               full = devices(schedule, "full");
    for (int k = 1; k < p - 1; ++k) {  // Stages that have a Transformer layer alone.
      CAPTURE(k);
      const DeviceId d{k};
      const double in_flight = schedule == "gpipe" ? m : p - k;
      CHECK(none[d].memory.stash.value == in_flight * (kKept + kInside));
      CHECK(selective[d].memory.stash.value == in_flight * kKept + kInside);
      CHECK(selective[d].memory.activations == in_flight);
      CHECK(full[d].memory.stash.value == in_flight * kInput + (kKept + kInside - kInput));
    }
  }
}

TEST_CASE("the memory model of planners equals the memory of a run without messages") {
  for (const std::string schedule : {"1f1b", "gpipe"})
    for (const std::string recompute : {"none", "selective", "full"}) {
      CAPTURE(schedule);
      CAPTURE(recompute);
      const CompiledExperiment c = pipeline(schedule, recompute);
      const IdVector<DeviceId, DeviceReport> counted = run(c, "ideal").report.devices;
      for (int k = 0; k < p; ++k) {
        CAPTURE(k);
        const StageMemory memory = stage_memory(c.costs.at(StageId{k}, 0).memory, schedule == "gpipe" ? m : p - k);
        CHECK(counted[DeviceId{k}].memory.resident == memory.resident());
        CHECK(counted[DeviceId{k}].memory.stash == memory.stash + memory.recompute_peak);
      }
    }
}

TEST_CASE("pipedream: a version and a stash for each micro-batch in flight, planned and counted") {
  const CompiledExperiment c = compile(load_experiment(
      "examples/cpu-transformer", {"plan={planner: pipedream, straight: true}",
                                   "run.schedule={name: pipedream, update: micro_batch}", "run.iterations=4"}));
  Bytes peak;
  for (const DeviceReport& d : run(c, "ideal").report.devices)
    peak = std::max(peak, d.memory.resident + d.memory.stash);
  CHECK(c.report.memory.value == doctest::Approx(peak.value).epsilon(1e-12));
}

TEST_CASE("piper and 2bw plan for no less than a run counts without messages") {
  for (const auto& asked : {std::pair{"plan={planner: piper}", "1f1b"},
                            {"plan={planner: piper, recompute: full}", "1f1b"},
                            {"plan={planner: piper, recompute: selective}", "1f1b"},
                            {"plan={planner: 2bw, largest_micro_batch: 2}", "2bw"},
                            {"plan={planner: 2bw, largest_micro_batch: 2, recompute: full}", "2bw"}}) {
    const std::string plan = asked.first, schedule = asked.second;
    CAPTURE(plan);
    const CompiledExperiment c =
        compile(load_experiment("examples/cpu-transformer", {plan, "run.schedule=" + schedule, "run.iterations=3"}));
    for (const DeviceReport& d : run(c, "ideal").report.devices)
      CHECK((d.memory.resident + d.memory.stash).value <= c.report.memory.value * (1 + 1e-12));
  }
}

}  // namespace stagecraft::selective_memory_test
