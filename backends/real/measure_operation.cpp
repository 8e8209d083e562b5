#include "backends/real/measure_operation.hpp"

#include "sim/core/numbers.hpp"

namespace stagecraft::real {
namespace {

constexpr int kMicroBatches = 64, kIterations = 8;

/// Four numbers through one small layer, one sample a micro-batch.
Workload smallest_workload() {
  const Operation input{.kind = OperationKind::Input, .columns = 4};
  const Operation dense{.kind = OperationKind::Linear, .inputs = {-1}, .columns = 4, .inner = 4};
  const Operation loss{.kind = OperationKind::MeanSquare, .inputs = {-1}, .columns = 4};
  Workload w;
  w.layers = {{"input", {}, {input}, {}}, {"dense", {LayerId{0}}, {dense}, {}}, {"loss", {LayerId{1}}, {loss}, {}}};
  StageWorkload& stage = w.stages.emplace_back();
  stage.layers = {LayerId{0}, LayerId{1}, LayerId{2}};
  stage.replicas = {{DeviceId{0}, {0, 1}}};
  w.parameters = dense.parameters();
  w.task = {{input}, {loss}, kMicroBatches, 0};
  w.training.task = "random";
  return w;
}

/// Forward and backward of each micro-batch, one after the other, and an update after the last.
Program smallest_program() {
  Program p;
  p.devices = 1;
  p.iterations = kIterations;
  p.mini_batch = kMicroBatches;
  p.micro_batches = {kMicroBatches};
  p.updates = {1};
  p.delays = {0};
  p.memory.resize(1);
  p.streams = {{DeviceId{0}, StreamKind::Compute, {}}};
  p.workload = std::make_shared<const Workload>(smallest_workload());
  p.first_wait = {0};
  const auto add = [&](InstructionKind kind, int number, int version) {
    if (p.size() > 0) p.waits.emplace_back(static_cast<std::int64_t>(p.size()) - 1);
    p.first_wait.push_back(static_cast<std::uint32_t>(p.waits.size()));
    p.instructions.push_back({.duration = {},
                              .stream = StreamId{0},
                              .device = DeviceId{0},
                              .stage = StageId{0},
                              .number = number,
                              .payload = version,
                              .kind = kind});
  };
  for (int i = 0; i < kIterations; ++i) {
    for (int m = i * kMicroBatches; m < (i + 1) * kMicroBatches; ++m) {
      add(InstructionKind::Forward, m, i);
      add(InstructionKind::Backward, m, i);
    }
    add(InstructionKind::Update, i, i + 1);
  }
  return p;
}

}  // namespace

Seconds measure_operation(const std::function<Timeline(const Program&)>& run) {
  const Program program = smallest_program();
  const Timeline t = run(program);
  std::vector<double> times;
  for (std::size_t n = program.size() / 2; n < program.size(); ++n) times.push_back(t.end[n] - t.start[n]);
  return Seconds{median(std::move(times))};
}

}  // namespace stagecraft::real
