// Memory that a real run took, against what the Program charges for it and against the formulas of the papers.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft::memory_test {
namespace {

constexpr int kDepth = 8, kBatch = 32, kWidth = 32;
constexpr double kBlock = 64, kNumber = 8;

/// Eight dense tanh stages in doubles, simulated and really run in the order of the program.
struct Run {
  Program program;
  Report simulated;
  Learnt learnt;
};

Run run_of(const std::string& optimizer, const std::string& weights, const std::string& schedule, int each) {
  const Experiment scenario =
      load_experiment("examples/teacher", {"training.optimizer=" + optimizer, "run.schedule=" + schedule,
                                           "weights=" + weights, fmt::format("run.micro_batches={}", each),
                                           fmt::format("plan.micro_batch_size={}", kBatch / each),
                                           fmt::format("run.iterations={}", 3 * kDepth / each + 6)});
  const CompiledExperiment p = compile(scenario);
  return {p.program, run(p, "ideal").report, *execute(p, "cpu", true).learnt};
}

std::string schedule_for(const WeightsDef& def) {
  return def.needs_flush ? "1f1b" : def.name == "2bw" ? "2bw" : "pipedream";
}

/// Buffers of the size of the weights at stage k, in addition to gradients and the state of the optimizer.
int buffers(std::string_view policy, int k, int each) {
  const int rest = kDepth - 1 - k;
  const auto updates = [each](int micro_batches) { return (micro_batches + each - 1) / each; };
  if (policy == "stash") return updates(rest) + 1;
  if (policy == "vertical-sync") return updates(kDepth - 1) + 1;
  if (policy == "2bw" || policy == "spectrain") return 2;
  if (policy == "spectrain-v2") return rest > 0 ? 1 + kDepth - k : 1;
  if (policy == "xpipe") return each > 1 && (each + k / 2 - 1) / each > 0 ? 3 : 2;
  if (policy == "pipeoptim" || policy == "geometric") return rest > 0 ? 2 : 1;
  // The average, and the weights that it makes.
  if (policy == "pipemare" || policy == "layerpipe2") return rest > 0 ? 3 : 1;
  return 1;
}

/// Weights and bias of a layer start at a multiple of 64 bytes.
void check_padded(Bytes measured, Bytes charged, int tensors) {
  CHECK(measured.value >= charged.value);
  CHECK(measured.value < charged.value + 2 * kBlock * std::max(1, tensors));
}

void check(const Run& run) {
  for (std::size_t d = 0; d < static_cast<std::size_t>(kDepth); ++d) {
    CAPTURE(d);
    const MeasuredMemory& measured = run.learnt.memory[DeviceId{d}];
    const ResidentMemory& charged = run.program.memory[DeviceId{d}];
    CHECK(measured.weight_buffers == charged.weight_buffers);
    check_padded(measured.weights, charged.weights, charged.weight_buffers);
    check_padded(measured.gradients, charged.gradients, 1);
    check_padded(measured.optimizer, charged.optimizer, 3);
  }
  // Only the bias of the last stage is no whole number of blocks.
  CHECK(run.learnt.memory[DeviceId{1}].weights == run.program.memory[DeviceId{1}].weights);
  CHECK(run.learnt.memory[DeviceId{1}].gradients == run.program.memory[DeviceId{1}].gradients);
  CHECK(run.learnt.memory[DeviceId{1}].optimizer == run.program.memory[DeviceId{1}].optimizer);
}

}  // namespace

TEST_CASE("weights, gradients and the state of the optimizer take what the program charges, for every policy") {
  for (const std::string optimizer : {"momentum", "adam", "sgd", "rmsprop"})
    for (const WeightsDef* def : weights::catalog())
      for (const int each : {1, kDepth}) {
        if (def->name == "2bw" && each < kDepth - 1) continue;  // Two versions are not enough.
        const std::string name(def->name);
        CAPTURE(optimizer);
        CAPTURE(name);
        CAPTURE(each);
        const Run paper = run_of(optimizer, name, schedule_for(*def), each);
        check(paper);
        for (int k = 0; k < kDepth; ++k)
          CHECK(paper.learnt.memory[DeviceId{k}].weight_buffers == buffers(name, k, each));
        if (def->as_released)
          check(run_of(optimizer, "{policy: " + name + ", fidelity: as_released}", schedule_for(*def), each));
      }
}

// A dense tanh stage keeps its input and its output for each micro-batch, has two gradients at a time in a backward,
// and the next input has come by then. The simulation counts what the backward needs once, with the stage that reads
// it, although the output of a tanh is needed on both sides of a message.
TEST_CASE("activations: two tensors for each micro-batch in flight, and three more") {
  const Run run = run_of("momentum", "naive", "pipedream", 1);
  const double tensor = kBatch * kWidth * kNumber;
  std::string text = "activations, measured over simulated, by stage:";
  for (int k = 0; k < kDepth; ++k) {
    const auto d = static_cast<std::size_t>(k);
    const double measured = run.learnt.memory[DeviceId{d}].activations.value;
    const MemoryPeak& peak = run.simulated.devices[DeviceId{d}].memory;
    text += fmt::format(" {:.2f}", measured / (peak.stash + peak.received + peak.outgoing).value);
    if (k > 0 && k + 1 < kDepth) CHECK(measured == (2 * (kDepth - k) + 3) * tensor);
  }
  MESSAGE(text);
  const Run flush = run_of("momentum", "flush", "1f1b", 1);
  for (std::size_t d = 1; d + 1 < static_cast<std::size_t>(kDepth); ++d)
    CHECK(flush.learnt.memory[DeviceId{d}].activations.value == 4 * tensor);
}

}  // namespace stagecraft::memory_test
