// Selective recomputation, really run: the same numbers to the last bit, in less memory.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"

namespace stagecraft::selective_test {
namespace {

constexpr double kLayers = 2, kHeads = 4, kWidth = 16, kTokens = 64, kSamples = 2, kNumber = 4;
constexpr double kInside = kHeads * kTokens * kTokens * kSamples * kNumber;  // Bytes for a layer and a micro-batch.

Learnt run(const std::string& recompute, const std::string& schedule) {
  const Experiment scenario = load_experiment(
      "examples/cpu-transformer",
      {"model.layers=4", "model.hidden=16", "model.heads=4", "model.vocabulary=50", "run.schedule=" + schedule,
       "run.micro_batches=4", "run.iterations=3",
       "plan={planner: explicit, stages: [{layers: [tok..l1], device: thread0, micro_batch_size: 2, recompute: " +
           recompute + "}, {layers: [l2..loss], device: thread1, micro_batch_size: 2, recompute: " + recompute +
           "}]}"});
  const CompiledExperiment p = compile(scenario);
  return *execute(p, "cpu", true).learnt;
}

}  // namespace

TEST_CASE("selective recomputation changes no bit, and memory holds the attention of one layer at a time") {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    CAPTURE(schedule);
    const Learnt none = run("none", schedule), selective = run("selective", schedule), full = run("full", schedule);
    CHECK(selective.weights == none.weights);
    CHECK(full.weights == none.weights);
    CHECK(selective.losses == none.losses);
    // Each layer of each micro-batch in flight saves kInside, except the one being recomputed: its output is there
    // twice.
    const double there = (std::string(schedule) == "gpipe" ? 4 : 2) * kLayers;
    const double saved = (none.memory[DeviceId{0}].activations - selective.memory[DeviceId{0}].activations).value;
    CHECK(saved >= (there - 1) * kInside - kTokens * kWidth * kSamples * kNumber);
    CHECK(saved <= there * kInside);
  }
}

}  // namespace stagecraft::selective_test
