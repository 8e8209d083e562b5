// Measures a profile on this host: layers, updates, collectives, messages, and what each op adds. The cpu backend calls
// it for `stagecraft profile`.

#include "backends/real/measure.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "backends/real/clocks.hpp"
#include "backends/real/host_runs.hpp"
#include "backends/real/layer_runs.hpp"
#include "backends/real/measure_groups.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/host.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::real {
namespace {

/// One thread's runs, and what they showed.
struct Runner {
  std::unique_ptr<Kernels> kernels;
  LayerRuns runs;
  LayerReadings readings;

  Runner(const ProfileRequest& request, int samples, std::span<const double> weights, std::unique_ptr<Kernels> given)
      : kernels(std::move(given)), runs(request, samples, weights, *kernels) {}
  void once(bool counts) {
    HostStopwatch watch(runs.net().nodes.size());
    runs.once(&watch);
    if (counts) runs.file(std::move(watch.times), readings);
  }
};

void measure_layers(const ProfileRequest& request, int samples, std::span<const double> weights,
                    const KernelFactory& factory, Profile& profile) {
  std::vector<std::unique_ptr<Runner>> runners;
  for (int t = 0; t < request.threads; ++t)
    runners.push_back(
        std::make_unique<Runner>(request, samples, weights, factory(width_of(request.workload), DeviceId{t})));
  repeat_together(request.threads, request.seconds, [&](int t, bool counts) { runners[t]->once(counts); });
  LayerReadings readings;
  for (const auto& runner : runners)
    for (const auto& [name, r] : runner->readings) append(readings[name], r);
  put_layers(readings, samples, profile);
}

SecondsOf host_seconds_of(CacheFlush& flush) {
  return [&flush](const std::function<void()>& work) {
    flush();
    const double start = steady_seconds();
    work();
    return steady_seconds() - start;
  };
}

/// Each thread updates other arrays, as the devices of a run do at the same time: they share the way to memory.
void measure_updates(const ProfileRequest& request, const KernelFactory& factory, Profile& profile) {
  std::vector<Profile> of_threads(request.threads);
  on_threads(request.threads, [&](int t) {
    CacheFlush flush(touched_bytes(request));
    put_updates(request, *factory(width_of(request.workload), DeviceId{t}), host_seconds_of(flush), of_threads[t]);
  });
  profile.updates = of_threads.front().updates;
  for (std::size_t n = 0; n < profile.updates.size(); ++n) {
    std::vector<double> times, predictions;
    for (const Profile& p : of_threads) {
      times.push_back(p.updates[n].time.value);
      predictions.push_back(p.updates[n].predict.value);
    }
    profile.updates[n].time = Seconds{median(std::move(times))};
    profile.updates[n].predict = Seconds{median(std::move(predictions))};
  }
}

/// As long as a stage waits for a message at least: the forward of one stage, but no longer than the measurement may
/// be.
double wait_for_message(const ProfileRequest& request, const Profile& profile) {
  constexpr double kLongest = 5e-3;
  const Workload& w = request.workload;
  double sum = 0;
  for (const WorkloadLayer& layer : w.layers)
    for (const MeasuredLayer& l : profile.layers)
      if (l.samples == request.samples.front() && l.layer == signature(layer.operations, w.precision))
        sum += l.forward.value;
  return std::clamp(sum / static_cast<double>(w.stages.size()), kShortWait, kLongest);
}

/// Checks that the memory suffices for the arrays of updates of every thread, which are more than layers need.
void require_memory(const ProfileRequest& request) {
  const Bytes needed{request.threads * 5.0 * request.workload.parameters *
                     static_cast<double>(width_of(request.workload))};
  const Bytes there = free_memory();
  if (needed > there)
    throw Infeasible("memory",
                     fmt::format("to measure the model takes about {} on this machine, which has {} free",
                                 to_text(needed), to_text(there)),
                     "a smaller model: layers are known by their shapes, so a few of each kind will do");
}

}  // namespace

Profile measure(const ProfileRequest& request, const KernelFactory& factory) {
  require_memory(request);
  Profile profile;
  profile.threads = request.threads;
  Activity activity("measuring layers");
  activity.count(0, "micro-batch sizes", std::ssize(request.samples));
  {
    const std::vector<double> weights = profile_weights(request, width_of(request.workload));
    for (const int samples : request.samples) {
      if (group_members(request.workload) > 1)
        measure_group_layers(request, samples, weights, factory, profile);
      else
        measure_layers(request, samples, weights, factory, profile);
      activity.count_one();
    }
  }
  HostMemberTimer timer(request);
  measure_parameter_collectives(request, factory, timer, profile);
  measure_updates(request, factory, profile);
  profile.operation = measure_op_overhead([&](const Program& program) { return execute(program, factory, {}); });
  const MessageFigures messages = measure_messages(wait_for_message(request, profile), request.seconds);
  profile.latency = messages.latency;
  profile.bandwidth = messages.bandwidth;
  return profile;
}

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

Seconds measure_op_overhead(const std::function<Timeline(const Program&)>& run) {
  const Program program = smallest_program();
  const Timeline t = run(program);
  std::vector<double> times;
  for (std::size_t n = program.size() / 2; n < program.size(); ++n)
    times.push_back(t.end[InstructionId{n}] - t.start[InstructionId{n}]);
  return Seconds{median(std::move(times))};
}

}  // namespace stagecraft::real
