#include "backends/cuda/measure.hpp"

#include <algorithm>
#include <deque>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/gpu_runtime.hpp"
#include "backends/cuda/run.hpp"
#include "backends/real/clocks.hpp"
#include "backends/real/layer_runs.hpp"
#include "backends/real/measure.hpp"
#include "sim/core/numbers.hpp"
#include "sim/cost/profile.hpp"

namespace stagecraft::cuda {
namespace {

/// The rows that one part adds to others, from b to a: a is read and written, b is read.
class Sum {
 public:
  Sum(GpuRuntime& runtime, int device, std::size_t bytes)
      : kernels_(queue_kernels(runtime, device)),
        bytes_(bytes),
        a_(kernels_->allocate(bytes)),
        b_(kernels_->allocate(bytes)) {
    for (void* row : {a_, b_}) kernels_->zero(row, bytes);
  }
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
  ~Sum() {
    kernels_->release(a_, bytes_);
    kernels_->release(b_, bytes_);
  }

  void times(int count) {
    const auto numbers = static_cast<std::int64_t>(bytes_ / kernels_->width());
    for (int i = 0; i < count; ++i) kernels_->add({b_, 1, numbers}, {a_, 1, numbers});
  }

 private:
  std::unique_ptr<real::Kernels> kernels_;
  std::size_t bytes_;
  void *a_, *b_;
};

/// The memory bandwidth that the busy parts reach together: the median of several rounds. Untimed work runs before and
/// after the timed work, so that all parts are busy during the measurement.
Bandwidth bandwidth_of(GpuRuntime& runtime, int busy, std::size_t bytes) {
  constexpr int kRounds = 5, kSums = 8;
  std::vector<std::unique_ptr<Sum>> sums;
  for (int d = 0; d < busy; ++d) sums.push_back(std::make_unique<Sum>(runtime, d, bytes));
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    std::deque<Event> begins, ends;
    for (int d = 0; d < busy; ++d) {
      Sum& sum = *sums[d];
      const int queue = runtime.compute_queue(d);
      sum.times(kSums / 2);
      runtime.queues().select(queue);
      begins.emplace_back(cudaEventDefault).record(runtime.queues().stream(queue));
      sum.times(kSums);
      ends.emplace_back(cudaEventDefault).record(runtime.queues().stream(queue));
      sum.times(kSums / 2);
    }
    runtime.finish();
    double rate = 0;
    for (int d = 0; d < busy; ++d) {
      const std::size_t i = d;
      rate += 3.0 * kSums * static_cast<double>(bytes) / std::max(1e-9, 1e-3 * ends[i].milliseconds_since(begins[i]));
    }
    rates.push_back(rate);
  }
  return Bandwidth{median(rates)};
}

/// Measures one partitioned GPU: its multiprocessors, and the memory bandwidth of one part while the others are idle
/// and of all parts at once, while they add long arrays.
MeasuredGpu measure_gpu(GpuRuntime& runtime) {
  const VirtualDevices& devices = runtime.devices();
  cudaDeviceProp gpu{};
  check(cudaGetDeviceProperties(&gpu, devices.gpu(0)), "cudaGetDeviceProperties");
  // Two rows of twice the level-two cache each, so that little of them is found there.
  const std::size_t bytes = std::max(std::size_t{1} << 18, 2 * static_cast<std::size_t>(std::max(0, gpu.l2CacheSize)));
  MeasuredGpu measured;
  measured.multiprocessors = gpu.multiProcessorCount;
  measured.group = devices.group();
  measured.parts = devices.count();
  measured.part = devices.multiprocessors(0);
  measured.memory_alone = bandwidth_of(runtime, 1, bytes);
  // One part alone was seen to get as much, however little all get together.
  measured.memory = std::max(measured.memory_alone, bandwidth_of(runtime, devices.count(), bytes));
  return measured;
}

double seconds_between(const Event& begin, const Event& end) { return 1e-3 * end.milliseconds_since(begin); }

/// Events around each part; they are read when the device has come to them.
class DeviceStopwatch final : public real::Stopwatch {
 public:
  DeviceStopwatch(GpuRuntime& runtime, int queue) : runtime_(runtime), queue_(queue) {}

  void start(real::LayerPass part, std::size_t node) override {
    runtime_.queues().select(queue_);
    laps_.emplace_back(part, node).begin.record(runtime_.queues().stream(queue_));
  }
  void stop() override { laps_.back().end.record(runtime_.queues().stream(queue_)); }

  real::NodeTimes times(std::size_t nodes) const {
    real::NodeTimes times(nodes);
    for (const Lap& lap : laps_) times.seconds_of(lap.part, lap.node) += seconds_between(lap.begin, lap.end);
    return times;
  }

 private:
  struct Lap {
    Lap(real::LayerPass p, std::size_t n) : part(p), node(n) {}
    real::LayerPass part;
    std::size_t node;
    Event begin{cudaEventDefault}, end{cudaEventDefault};
  };
  GpuRuntime& runtime_;
  int queue_;
  std::deque<Lap> laps_;
};

/// Times each layer while `busy` devices run it at once. An untimed run goes first, so that the device stays busy until
/// the whole timed run is enqueued.
real::LayerReadings measure_layers(const ProfileRequest& request, int samples, int busy, double seconds,
                                   GpuRuntime& runtime) {
  std::vector<std::unique_ptr<real::Kernels>> kernels;
  std::vector<std::unique_ptr<real::LayerRuns>> runs;
  for (int d = 0; d < busy; ++d) {
    kernels.push_back(queue_kernels(runtime, d));
    runs.push_back(std::make_unique<real::LayerRuns>(request, samples, *kernels.back()));
  }
  real::LayerReadings readings;
  const double begin = real::steady_seconds();
  for (int round = 0; round < real::kMost + real::kWarmUps; ++round) {
    const int counted = round - real::kWarmUps;
    if (counted >= real::kFewest && real::steady_seconds() - begin > seconds) break;
    std::deque<DeviceStopwatch> watches;
    for (const auto& r : runs) r->once(nullptr);
    for (int d = 0; d < busy; ++d) runs[d]->once(&watches.emplace_back(runtime, runtime.compute_queue(d)));
    runtime.finish();
    for (std::size_t d = 0; d < runs.size() && counted >= 0; ++d)
      runs[d]->file(watches[d].times(runs[d]->nodes()), readings);
  }
  return readings;
}

/// Parts of one GPU run each layer alone and all together: how much slower they are then is what they share.
void measure_layers(const ProfileRequest& request, int samples, GpuRuntime& runtime, Profile& profile) {
  const int all_threads = request.threads;
  if (!profile.gpu)
    return real::put_layers(measure_layers(request, samples, all_threads, request.seconds, runtime), samples, profile);
  const real::LayerReadings alone = measure_layers(request, samples, 1, request.seconds / 2, runtime);
  const real::LayerReadings together = measure_layers(request, samples, all_threads, request.seconds / 2, runtime);
  const std::size_t first = profile.layers.size();
  real::put_layers(alone, samples, profile);
  for (std::size_t l = first; l < profile.layers.size(); ++l) {
    const std::string& name = profile.layers[l].layer;
    const double rested = median(alone.at(name).total);
    if (rested > 0) profile.layers[l].slowdown = median(together.at(name).total) / rested;
  }
}

real::SecondsOf device_seconds_of(GpuRuntime& runtime) {
  return [&runtime](const std::function<void()>& work) {
    const cudaStream_t stream = runtime.queues().stream(0);
    runtime.queues().select(0);
    const Event begin(cudaEventDefault), end(cudaEventDefault);
    work();
    begin.record(stream);
    work();
    end.record(stream);
    runtime.finish();
    return seconds_between(begin, end);
  };
}

/// Seconds from the end of an op on one device to the start of the next on the other, with a message between. Another
/// GPU has another clock: then the first device checks when the message is there.
double message_seconds(GpuRuntime& runtime, int messages_to, std::size_t bytes) {
  constexpr int kRounds = 100;
  const int to = runtime.devices().count() > 1 ? 1 : 0;
  const std::unique_ptr<real::Kernels> from_kernels = queue_kernels(runtime, 0),
                                       to_kernels = queue_kernels(runtime, to);
  void* const from = from_kernels->allocate(bytes);
  void* const there = to_kernels->allocate(bytes);
  Queues& queues = runtime.queues();
  const int watcher = runtime.compute_queue(runtime.devices().gpu(to) == runtime.devices().gpu(0) ? to : 0);
  std::deque<Event> events;
  std::vector<std::pair<const Event*, const Event*>> gaps;
  const auto mark = [&](int queue) {
    queues.select(queue);
    return &events.emplace_back(cudaEventDefault);
  };
  for (int round = 0; round < kRounds; ++round) {
    from_kernels->zero(from, bytes);
    const Event* const op = mark(runtime.compute_queue(0));
    const Point recorded = queues.end(runtime.compute_queue(0), *op);
    queues.select(messages_to);
    queues.wait(messages_to, recorded);
    check(cudaMemcpyAsync(there, from, bytes, cudaMemcpyDeviceToDevice, queues.stream(messages_to)), "a message");
    const Event* const copied = mark(messages_to);
    const Point arrived = queues.end(messages_to, *copied);
    queues.select(runtime.compute_queue(to));
    queues.wait(runtime.compute_queue(to), arrived);
    queues.wait(watcher, arrived);
    const Event* const next = mark(watcher);
    next->record(queues.stream(watcher));
    gaps.emplace_back(op, next);
    to_kernels->zero(there, bytes);
    const Event* const back = mark(runtime.compute_queue(to));
    queues.wait(runtime.compute_queue(0), queues.end(runtime.compute_queue(to), *back));
  }
  runtime.finish();
  std::vector<double> seconds;
  for (const auto& [op, next] : gaps) seconds.push_back(seconds_between(*op, *next));
  from_kernels->release(from, bytes);
  to_kernels->release(there, bytes);
  return median(seconds);
}

void measure_messages(GpuRuntime& runtime, Profile& profile) {
  constexpr std::size_t kFew = 64, kMany = std::size_t{16} << 20;
  const int queue = runtime.new_queue(runtime.devices().count() > 1 ? 1 : 0, true);
  const double few = message_seconds(runtime, queue, kFew), many = message_seconds(runtime, queue, kMany);
  profile.latency = Seconds{few};
  profile.bandwidth = Bandwidth{(kMany - kFew) / std::max(1e-9, many - few)};
}

}  // namespace

Profile measure(const ProfileRequest& request, const KernelMaker& maker) {
  Profile profile;
  profile.threads = request.threads;
  auto runtime = std::make_unique<GpuRuntime>(request.threads, maker, real::width_of(request.workload), false);
  try {
    if (runtime->devices().count() > 1 && runtime->devices().partitioning() != GpuPartitioning::Gpus)
      profile.gpu = measure_gpu(*runtime);
    for (const int samples : request.samples) measure_layers(request, samples, *runtime, profile);
    put_updates(request, *queue_kernels(*runtime, 0), device_seconds_of(*runtime), profile);
    profile.operation = real::measure_operation([&](const Program& program) { return run(program, maker, {}); });
    measure_messages(*runtime, profile);
  } catch (const BackendError&) {  // As in a run: nothing is given back by a device that is stuck.
    static_cast<void>(runtime.release());
    throw;
  }
  profile.machine = runtime->devices().description();
  return profile;
}

}  // namespace stagecraft::cuda
