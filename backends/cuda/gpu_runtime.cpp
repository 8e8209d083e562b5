// The streams and memories of the virtual devices of a run, and the `real::Kernels` of each on its current stream: work
// is enqueued, or recorded while a CommandRecorder is set.

#include "backends/cuda/gpu_runtime.hpp"

#include <fmt/core.h>

#include "backends/cuda/kernels/counter.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::cuda {
namespace {

/// Arenas grow by this many bytes.
constexpr std::size_t kStep = std::size_t{4} << 20;
constexpr int kNan = 0xff;  // All bits set are a NaN.

/// The kernels of a virtual device: each call goes to the stream that the device works on now.
class QueueKernels final : public real::Kernels {
 public:
  QueueKernels(GpuRuntime& runtime, int device, bool on_host) : runtime_(runtime), device_(device), on_host_(on_host) {}

  std::size_t width() const override { return runtime_.width(); }
  void* allocate(std::size_t bytes) override { return runtime_.take(device_, bytes, on_host_); }
  void release(void* data, std::size_t) override {
    if (const auto it = counters_.extract(data)) runtime_.give(device_, it.mapped().numbers);
    runtime_.give(device_, data);
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    const bool comes_from_host = runtime_.is_on_host(device_, from);
    if (!on_host_ && !comes_from_host) return inner().copy(from, to, bytes);
    runtime_.copy_with_host(runtime_.used(device_), on_host_, from, to, bytes);
  }
  void copy_rows(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride, std::int64_t rows,
                 std::int64_t columns) override {
    inner().copy_rows(from, from_stride, to, to_stride, rows, columns);
  }
  void zero(void* to, std::size_t bytes) override { inner().zero(to, bytes); }
  void upload(std::span<const double> from, void* to) override { inner().upload(from, to); }
  void download(const void* from, std::span<double> to) override {
    runtime_.finish(runtime_.used(device_));
    inner().download(from, to);
  }
  bool finite(real::Tensor t) override {
    runtime_.finish(runtime_.used(device_));
    return inner().finite(t);
  }
  void choose_experts(const Operation& op, real::Tensor scores, std::span<std::int32_t> experts) override {
    runtime_.finish(runtime_.used(device_));
    inner().choose_experts(op, scores, experts);
  }
  std::int64_t saved_numbers(const Operation& op, std::int64_t samples) override {
    return inner().saved_numbers(op, samples);
  }
  void forward(const real::Call& call) override { inner().forward(call); }
  void input_gradient(const real::Call& call, real::Tensor d, std::span<const real::Gradient> d_inputs) override {
    inner().input_gradient(call, d, d_inputs);
  }
  void weight_gradient(const real::Call& call, real::Tensor d, void* d_weights) override {
    inner().weight_gradient(call, d, d_weights);
  }
  bool fuses_gelu() const override { return runtime_.kernels(runtime_.used(device_)).fuses_gelu(); }
  void forward_with_gelu(const real::Call& product, const real::Call& gelu) override {
    inner().forward_with_gelu(product, gelu);
  }
  void input_gradient_with_gelu(const real::Call& product, real::Tensor d, const real::Gradient& between,
                                const real::Call& gelu, const real::Gradient& d_input) override {
    inner().input_gradient_with_gelu(product, d, between, gelu, d_input);
  }
  void add(real::Tensor from, real::Tensor to) override { inner().add(from, to); }
  void scale(double factor, real::Tensor t) override { inner().scale(factor, t); }
  void narrow(real::Tensor from, real::Tensor to) override { inner().narrow(from, to); }
  void maximum(real::Tensor from, real::Tensor to) override { inner().maximum(from, to); }
  void attention_part(const real::Call& call, const real::KeyPart& part) override {
    inner().attention_part(call, part);
  }
  void attention_part_gradient(const real::Call& call, const real::KeyPart& part, real::Tensor d_output,
                               real::Tensor d_input, real::Tensor d_keys) override {
    inner().attention_part_gradient(call, part, d_output, d_input, d_keys);
  }
  void divided_loss(real::DividedLossStep step, const real::Call& call, const real::DividedLoss& rows) override {
    inner().divided_loss(step, call, rows);
  }
  void divided_scores(real::ScoreStep step, const real::Call& call, const real::ScoreRecords& records) override {
    inner().divided_scores(step, call, records);
  }
  void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const void* gradient,
              real::OptimizerState& state, const void* from, void* to) override {
    state.counter = take_step(rule, options, state);
    inner().update(rule, options, count, gradient, state, from, to);
    if (!state.counter) return;
    const auto at = [&](std::int64_t n) {
      return real::Tensor{static_cast<char*>(state.counter) + static_cast<std::size_t>(n) * real::wide_width(width()),
                          1, 1, true};
    };
    inner().add(at(counter::kOne), at(0));
  }
  void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
               const real::OptimizerState& state, const void* from, void* to) override {
    inner().predict(rule, direction, horizon, count, state, from, to);
  }
  void reconstruct(const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                   const real::OptimizerState& state, const void* from, void* to) override {
    inner().reconstruct(rule, kind, delay, count, state, from, to);
  }

 private:
  struct Counter {
    void* numbers = nullptr;
    int steps = 0;  ///< The device's count once it has done all that is enqueued.
  };

  real::Kernels& inner() { return runtime_.kernels(runtime_.used(device_)); }

  /// The counter of a step that the device counts itself. Null where the host passes the step: counting was not
  /// requested, or did not begin with the first step.
  void* take_step(const OptimizerRule& rule, const real::UpdateOptions& options, const real::OptimizerState& state) {
    const bool corrects = rule.kind == OptimizerKind::Adam || rule.kind == OptimizerKind::AdamW;
    if (!corrects || state.average || options.rate_scale != 1 || state.steps >= runtime_.most_steps()) return nullptr;
    if (state.steps == 0 && !runtime_.recorder()) {
      const std::vector<double> numbers = counter::numbers(rule, runtime_.most_steps());
      Counter& fresh = counters_[state.first];
      if (!fresh.numbers) fresh.numbers = allocate(numbers.size() * real::wide_width(width()));
      inner().upload(numbers, fresh.numbers);
      fresh.steps = 0;
    }
    const auto it = counters_.find(state.first);
    if (it == counters_.end() || it->second.steps != state.steps) return nullptr;
    ++it->second.steps;
    return it->second.numbers;
  }

  GpuRuntime& runtime_;
  int device_;
  bool on_host_;
  std::map<void*, Counter> counters_;  ///< By the memory of the first moments.
};

}  // namespace

GpuRuntime::GpuRuntime(int devices, KernelMaker maker, std::size_t width, bool fills_new_memory, std::vector<int> gpus)
    : devices_(devices, std::move(gpus)), maker_(std::move(maker)), width_(width), fills_(fills_new_memory) {
  for (int d = 0; d < devices; ++d) {
    new_queue(d, false);
    used_.push_back(compute_queue(d));
    arenas_.emplace_back([this, d](std::size_t bytes) { return more(d, bytes); }, kStep);
    host_arenas_.emplace_back([this](std::size_t bytes) { return more_on_host(bytes); }, kStep);
  }
}

GpuRuntime::~GpuRuntime() {
  kernels_.clear();
  for (void* const block : blocks_) cudaFree(block);
  for (void* const block : host_blocks_) cudaFreeHost(block);
}

int GpuRuntime::new_queue(int device, bool for_messages) {
  device_of_.push_back(device);
  kernels_.emplace_back();
  const int queue = queues_.add(devices_.new_stream(device, for_messages), devices_.gpu(device));
  launch_limit_.share_queues(queues_.size());
  return queue;
}

real::Kernels& GpuRuntime::kernels(int queue) {
  std::unique_ptr<real::Kernels>& slot = kernels_[queue];
  queues_.select(queue);
  if (!slot) slot = maker_(queues_.stream(queue), devices_.multiprocessors(device_of_[queue]), width_);
  if (!recorder_) return *slot;
  recording_.resize(kernels_.size());
  std::unique_ptr<real::Kernels>& writer = recording_[queue];
  if (!writer) writer = recorded_kernels(*recorder_, queue, *slot);
  return *writer;
}

void GpuRuntime::write_to(CommandRecorder* recorder) {
  recorder_ = recorder;
  recording_.clear();
  queues_.write_to(recorder);
}

void* GpuRuntime::more(int device, std::size_t bytes) {
  check(cudaSetDevice(devices_.gpu(device)), "cudaSetDevice");
  void* const block = device_memory(bytes);
  if (block) blocks_.push_back(block);
  return block;
}

void* GpuRuntime::more_on_host(std::size_t bytes) {
  void* const block = pinned_memory(bytes);
  if (block) host_blocks_.push_back(block);
  return block;
}

void GpuRuntime::refuse_memory(int device, std::size_t bytes, bool on_host) const {
  const auto text = [](std::size_t size) { return stagecraft::to_text(Bytes{static_cast<double>(size)}); };
  if (on_host)
    throw Infeasible("host-memory",
                     fmt::format("the host keeps {} of device {} in pinned memory and can pin no more than that; {} "
                                 "are needed",
                                 text(host_arenas_[device].reserved()), device, text(bytes)),
                     "a smaller share in plan.offload");
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  throw Infeasible("memory",
                   fmt::format("device {} holds {} and needs {} more, of which the GPU has no more than {} of {} free",
                               device, text(arenas_[device].reserved()), text(bytes), text(free), text(total)),
                   "fewer or smaller micro-batches, recomputation, or more GPUs");
}

void* GpuRuntime::take(int device, std::size_t bytes, bool on_host) {
  const int queue = used(device);
  const Arena::Taken taken = (on_host ? host_arenas_[device] : arena(device)).take(bytes, queues_.reached(queue));
  if (!taken.data) refuse_memory(device, bytes, on_host);
  queues_.wait(queue, taken.from);
  if (!fills_ || on_host) return taken.data;
  const auto fill = [to = taken.data, bytes, stream = queues_.stream(queue)] {
    check(cudaMemsetAsync(to, kNan, bytes, stream), "cudaMemsetAsync");
    submitted(stream, "cudaMemsetAsync");
  };
  if (recorder_)
    recorder_->work(queue, fill, taken.data, static_cast<std::uint64_t>(bytes));
  else
    fill();
  arena(device).hold(taken.data, queues_.reached(queue));
  return taken.data;
}

/// The device's own computation may have used it up to now, and so may the queue that it works on.
void GpuRuntime::give(int device, void* data) {
  VectorClock last_use(queues_.size(), 0);
  for (const int queue : {compute_queue(device), used(device)})
    last_use[queue] = queues_.newest(queue, queue == used(device));
  (is_on_host(device, data) ? host_arenas_[device] : arena(device)).give(data, last_use);
}

void GpuRuntime::wait_for_users(int queue, const void* inside) {
  for (const Arena& arena : arenas_)
    if (arena.holds(inside)) return queues_.wait(queue, arena.usable_from(inside));
}

void GpuRuntime::hold(int queue, const void* inside) {
  VectorClock moment(queues_.size(), 0);
  moment[queue] = queues_.newest(queue, true);
  for (Arena& arena : arenas_)
    if (arena.holds(inside)) return arena.hold(inside, moment);
}

void GpuRuntime::copy_between(int queue, int from, int to, const void* data, void* target, std::size_t bytes) {
  const auto copy = [=, stream = queues_.stream(queue), to = devices_.gpu(to), from = devices_.gpu(from)] {
    check(cudaMemcpyPeerAsync(target, to, data, from, bytes, stream), "cudaMemcpyPeerAsync");
    submitted(stream, "cudaMemcpyPeerAsync");
  };
  if (recorder_) return recorder_->work(queue, copy, Copied{data, target, bytes});
  copy();
}

void GpuRuntime::copy_with_host(int queue, bool to_host, const void* data, void* target, std::size_t bytes) {
  const cudaMemcpyKind kind = to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  if (to_host) hold(queue, data);  // A message may have the array for longer than the stage, and give it back.
  const auto copy = [=, stream = queues_.stream(queue)] {
    check(cudaMemcpyAsync(target, data, bytes, kind, stream), "a copy between a device and its host");
    submitted(stream, "a copy between a device and its host");
  };
  if (recorder_) return recorder_->work(queue, copy, Copied{data, target, bytes});
  copy();
}

void GpuRuntime::finish(int queue) {
  queues_.select(queue);
  wait_policy_([&] { return over(queues_.stream(queue)); });
}

void GpuRuntime::finish() {
  for (int q = 0; q < queues_.size(); ++q) finish(q);
  launch_limit_.forget();
  forget();
}

bool GpuRuntime::finishes_within(double seconds) noexcept try {
  wait_by(at_most(seconds));
  finish();
  return true;
} catch (...) {
  return false;
}

void GpuRuntime::stop_growing() {
  for (std::vector<Arena>* const arenas : {&arenas_, &host_arenas_})
    for (Arena& arena : *arenas) arena.stop_growing();
}

std::size_t GpuRuntime::reserved() const {
  std::size_t sum = 0;
  for (const Arena& arena : arenas_) sum += arena.reserved();
  return sum;
}

std::vector<std::uint64_t> GpuRuntime::layout() const {
  std::vector<std::uint64_t> words;
  for (const std::vector<Arena>* const arenas : {&arenas_, &host_arenas_})
    for (const Arena& arena : *arenas) arena.note_layout(words);
  return words;
}

void GpuRuntime::forget() {
  queues_.forget();
  for (std::vector<Arena>* const arenas : {&arenas_, &host_arenas_})
    for (Arena& arena : *arenas) arena.forget();
}

std::unique_ptr<real::Kernels> queue_kernels(GpuRuntime& runtime, int device, bool on_host) {
  return std::make_unique<QueueKernels>(runtime, device, on_host);
}

}  // namespace stagecraft::cuda
