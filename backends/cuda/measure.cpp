// For `stagecraft profile` on GPUs: measures by events the layers on all virtual devices at once, memory bandwidth,
// updates, collectives, messages and what an op adds.

#include "backends/cuda/measure.hpp"

#include <algorithm>
#include <deque>

#include <fmt/core.h>

#include "backends/cuda/device_stopwatch.hpp"
#include "backends/cuda/measure_groups.hpp"
#include "backends/cuda/messages.hpp"
#include "backends/cuda/ranks/nccl_communicators.hpp"
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
    const auto numbers = static_cast<std::int64_t>(bytes_ / real::wide_width(kernels_->width()));
    for (int i = 0; i < count; ++i) kernels_->add({b_, 1, numbers, true}, {a_, 1, numbers, true});
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

/// A profile has figures of the memory of one GPU, which its parts share.
void require_one_divided(const VirtualDevices& devices) {
  if (devices.partitioning() == GpuPartitioning::Gpus || devices.gpu(devices.count() - 1) == devices.gpu(0)) return;
  throw InputError(
      fmt::format("{} devices are parts of several GPUs, and a profile is of the parts of one", devices.count()),
      "one GPU, with CUDA_VISIBLE_DEVICES=0; or a GPU for each device");
}

/// Times each layer while `busy` devices run it at once. An untimed run goes first, so that the device stays busy until
/// the whole timed run is enqueued.
real::LayerReadings measure_layers(const ProfileRequest& request, int samples, std::span<const double> weights,
                                   int busy, double seconds, GpuRuntime& runtime) {
  std::vector<std::unique_ptr<real::Kernels>> kernels;
  std::vector<std::unique_ptr<real::LayerRuns>> runs;
  for (int d = 0; d < busy; ++d) {
    kernels.push_back(queue_kernels(runtime, d));
    runs.push_back(std::make_unique<real::LayerRuns>(request, samples, weights, *kernels.back()));
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
      runs[d]->file(watches[d].times(runs[d]->net().nodes.size()), readings);
  }
  return readings;
}

/// Parts of one GPU run each layer alone and all together: how much slower they are then is what they share.
void measure_layers(const ProfileRequest& request, int samples, std::span<const double> weights, GpuRuntime& runtime,
                    Profile& profile) {
  const int all_threads = request.threads;
  if (!profile.gpu)
    return real::put_layers(measure_layers(request, samples, weights, all_threads, request.seconds, runtime), samples,
                            profile);
  const real::LayerReadings alone = measure_layers(request, samples, weights, 1, request.seconds / 2, runtime);
  const real::LayerReadings together =
      measure_layers(request, samples, weights, all_threads, request.seconds / 2, runtime);
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

/// Two devices, of which the first sends a message to the second. The message has no stream, so it has its own
/// communicator, as with `streams: direction`.
Program one_message() {
  Program p;
  p.devices = 2;
  p.first_wait.push_back(0);
  for (const InstructionKind kind : {InstructionKind::Send, InstructionKind::Receive}) {
    Instruction end;
    end.kind = kind;
    end.device = DeviceId{kind == InstructionKind::Send ? 0 : 1};
    end.payload = 0;
    p.instructions.push_back(end);
    p.first_wait.push_back(0);
  }
  p.transfers.push_back({InstructionId{0}, InstructionId{1}, {}, {}, 0});
  return p;
}

/// Messages from the first device of the runtime to the second, or to itself, as runs with these options carry them.
class MessageRoad {
 public:
  MessageRoad(GpuRuntime& runtime, const GpuOptions& options, const CopyKernel& copy_kernel)
      : runtime_(runtime),
        program_(one_message()),
        to_(runtime.devices().count() > 1 ? 1 : 0),
        receiver_(runtime.new_queue(to_, true)) {
    const VirtualDevices& devices = runtime.devices();
    const std::vector<int> gpus{devices.gpu(0), devices.gpu(to_)};
    if (options.messages == GpuMessages::Nccl && gpus[0] != gpus[1]) {
      sender_ = runtime.new_queue(0, true);
      ranks_ = std::make_unique<NcclCommunicators>(
          program_, std::vector<GpuSlot>{{0, gpus[0]}, {0, gpus[1]}}, 0, ByNccl{true, false, options.nccl_ctas},
          [](const std::string& text) { return std::vector<std::string>{text}; });
      ranks_->open(at_most(60));
    } else {
      messages_ = make_messages(program_, gpus, options, copy_kernel);
    }
  }

  int to() const { return to_; }

  /// Carries a message that waits for `ready`; the point at which it has arrived.
  Point carry(Point ready, const void* from, void* target, std::size_t bytes, Event& arrived, Event& sent) {
    Queues& queues = runtime_.queues();
    queues.select(receiver_);
    queues.wait(receiver_, ready);
    if (ranks_) {
      queues.select(sender_);
      queues.wait(sender_, ready);
      ranks_->carry(0, {{DeviceId{0}, DeviceId{1}, const_cast<void*>(from), bytes, true, queues.stream(sender_)},
                        {DeviceId{1}, DeviceId{0}, target, bytes, false, queues.stream(receiver_)}});
      queues.select(sender_);
      queues.end(sender_, sent);
      queues.select(receiver_);
    } else {
      const cudaStream_t stream = queues.stream(receiver_);
      messages_->message(0, stream, [&] { messages_->copy(from, target, bytes, stream); });
    }
    return queues.end(receiver_, arrived);
  }

 private:
  GpuRuntime& runtime_;
  Program program_;
  int to_, receiver_, sender_ = -1;
  std::unique_ptr<Messages> messages_;
  std::unique_ptr<NcclCommunicators> ranks_;
};

/// Seconds from the end of an op on one device to the start of the next on the other, with a message between. Another
/// GPU has another clock: then the first device checks when the message is there.
double message_seconds(GpuRuntime& runtime, MessageRoad& road, std::size_t bytes) {
  constexpr int kRounds = 100;
  const int to = road.to();
  const std::unique_ptr<real::Kernels> from_kernels = queue_kernels(runtime, 0),
                                       to_kernels = queue_kernels(runtime, to);
  void* const from = from_kernels->allocate(bytes);
  void* const there = to_kernels->allocate(bytes);
  Queues& queues = runtime.queues();
  const int first = runtime.compute_queue(0), second = runtime.compute_queue(to);
  const int watcher = runtime.devices().gpu(to) == runtime.devices().gpu(0) ? second : first;
  std::deque<Event> events;
  std::vector<std::pair<const Event*, const Event*>> gaps;
  const auto mark = [&](int queue) -> Event& {
    queues.select(queue);
    return events.emplace_back(cudaEventDefault);
  };
  for (int round = 0; round < kRounds; ++round) {
    from_kernels->zero(from, bytes);
    const Event& op = mark(first);
    const Point recorded = queues.end(first, op);
    Event& sent = mark(first);
    Event& carried = mark(second);
    const Point arrived = road.carry(recorded, from, there, bytes, carried, sent);
    queues.select(second);
    queues.wait(second, arrived);
    queues.select(watcher);
    queues.wait(watcher, arrived);
    const Event& next = mark(watcher);
    next.record(queues.stream(watcher));
    gaps.emplace_back(&op, &next);
    to_kernels->zero(there, bytes);
    const Event& back = mark(second);
    const Point over = queues.end(second, back);
    queues.select(first);
    queues.wait(first, over);
  }
  runtime.finish();
  std::vector<double> seconds;
  for (const auto& [op, next] : gaps) seconds.push_back(seconds_between(*op, *next));
  from_kernels->release(from, bytes);
  to_kernels->release(there, bytes);
  return median(seconds);
}

/// NCCL makes these sums in a run with sums: collective, and was not measured.
bool is_sum_of_gradients(const MeasuredCollective& c) {
  return c.use == CollectiveUse::Parameters && c.kind == CollectiveKind::AllReduce;
}

void measure_messages(GpuRuntime& runtime, const GpuOptions& options, const CopyKernel& copy_kernel, Profile& profile) {
  constexpr std::size_t kFew = 64, kMany = std::size_t{16} << 20;
  MessageRoad road(runtime, options, copy_kernel);
  const double few = message_seconds(runtime, road, kFew), many = message_seconds(runtime, road, kMany);
  profile.latency = Seconds{few};
  profile.bandwidth = Bandwidth{(kMany - kFew) / std::max(1e-9, many - few)};
  profile.messages = to_text(options.messages);
}

}  // namespace

Profile measure(const ProfileRequest& request, const KernelMaker& maker, const CopyKernel& copy_kernel) {
  Profile profile;
  profile.threads = request.threads;
  auto runtime = std::make_unique<GpuRuntime>(request.threads, maker, real::width_of(request.workload), false);
  const LimitedLaunches limited(&runtime->launch_limit());
  try {
    require_one_divided(runtime->devices());
    if (runtime->devices().count() > 1 && runtime->devices().partitioning() != GpuPartitioning::Gpus)
      profile.gpu = measure_gpu(*runtime);
    {
      const std::vector<double> weights = real::profile_weights(request, real::width_of(request.workload));
      for (const int samples : request.samples)
        if (real::group_members(request.workload) > 1)
          measure_group_layers(request, samples, weights, *runtime, profile);
        else
          measure_layers(request, samples, weights, *runtime, profile);
    }
    DeviceMemberTimer timer(*runtime);
    const auto kernels_of = [&](std::size_t, DeviceId d) { return queue_kernels(*runtime, static_cast<int>(d.value)); };
    real::measure_parameter_collectives(request, kernels_of, timer, profile);
    if (request.gpu.sums == GpuSums::Collective) std::erase_if(profile.collectives, is_sum_of_gradients);
    put_updates(request, *queue_kernels(*runtime, 0), device_seconds_of(*runtime), profile);
    profile.operation = real::measure_op_overhead([&](const Program& program) { return run(program, maker, {}); });
    measure_messages(*runtime, request.gpu, copy_kernel, profile);
  } catch (const BackendError&) {  // As in a run: nothing is given back by a device that is stuck.
    static_cast<void>(runtime.release());
    throw;
  }
  profile.machine = runtime->devices().description();
  return profile;
}

}  // namespace stagecraft::cuda
