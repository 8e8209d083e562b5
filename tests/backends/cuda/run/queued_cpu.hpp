#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "backends/cpu/kernels.hpp"
#include "backends/cuda/launch_limit.hpp"
#include "backends/real/kernels.hpp"
#include "tests/support/emulated_gpu/streams.hpp"

namespace stagecraft::test {

/// The kernels of the CPU, each call as work of a stream: whatever is not ordered by it is not ordered.
class QueuedCpu : public real::Kernels {
 public:
  QueuedCpu(cudaStream_t stream, std::size_t width) : stream_(stream), kernels_(cpu::make_kernels(width)) {}

  QueuedCpu(const QueuedCpu&) = delete;
  QueuedCpu& operator=(const QueuedCpu&) = delete;
  ~QueuedCpu() override { cudaStreamSynchronize(stream_); }

  std::size_t width() const override { return kernels_->width(); }
  void* allocate(std::size_t bytes) override { return kernels_->allocate(bytes); }
  void release(void* data, std::size_t bytes) override { kernels_->release(data, bytes); }
  void copy(const void* from, void* to, std::size_t bytes) override {
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_);
    cuda::submitted(stream_, "a copy");
  }
  void zero(void* to, std::size_t bytes) override {
    cudaMemsetAsync(to, 0, bytes, stream_);
    cuda::submitted(stream_, "a memset");
  }
  void upload(std::span<const double> from, void* to) override {
    enqueue([this, numbers = std::vector<double>(from.begin(), from.end()), to] { kernels_->upload(numbers, to); });
  }
  void download(const void* from, std::span<double> to) override {
    cudaStreamSynchronize(stream_);
    kernels_->download(from, to);
  }
  bool finite(real::Tensor tensor) override {
    cudaStreamSynchronize(stream_);
    return kernels_->finite(tensor);
  }
  void choose_experts(const Operation& op, real::Tensor scores, std::span<std::int32_t> experts) override {
    cudaStreamSynchronize(stream_);
    kernels_->choose_experts(op, scores, experts);
  }
  void forward(const real::Call& call) override {
    enqueue([this, saved_call = real::KeptCall(call)] { kernels_->forward(saved_call.call()); });
  }
  void input_gradient(const real::Call& call, real::Tensor d_output,
                      std::span<const real::Gradient> d_inputs) override {
    enqueue([this, saved_call = real::KeptCall(call), d_output,
             d = std::vector<real::Gradient>(d_inputs.begin(), d_inputs.end())] {
      kernels_->input_gradient(saved_call.call(), d_output, d);
    });
  }
  void weight_gradient(const real::Call& call, real::Tensor d_output, void* d_weights) override {
    enqueue([this, saved_call = real::KeptCall(call), d_output, d_weights] {
      kernels_->weight_gradient(saved_call.call(), d_output, d_weights);
    });
  }
  void add(real::Tensor from, real::Tensor to) override {
    enqueue([this, from, to] { kernels_->add(from, to); });
  }
  void scale(double factor, real::Tensor tensor) override {
    enqueue([this, factor, tensor] { kernels_->scale(factor, tensor); });
  }
  void narrow(real::Tensor from, real::Tensor to) override {
    enqueue([this, from, to] { kernels_->narrow(from, to); });
  }
  void maximum(real::Tensor from, real::Tensor to) override {
    enqueue([this, from, to] { kernels_->maximum(from, to); });
  }
  void attention_part(const real::Call& call, const real::KeyPart& part) override {
    enqueue([this, saved_call = real::KeptCall(call), part] { kernels_->attention_part(saved_call.call(), part); });
  }
  void attention_part_gradient(const real::Call& call, const real::KeyPart& part, real::Tensor d_output,
                               real::Tensor d_input, real::Tensor d_keys) override {
    enqueue([this, saved_call = real::KeptCall(call), part, d_output, d_input, d_keys] {
      kernels_->attention_part_gradient(saved_call.call(), part, d_output, d_input, d_keys);
    });
  }
  void divided_loss(real::DividedLossStep step, const real::Call& call, const real::DividedLoss& rows) override {
    enqueue([this, step, saved_call = real::KeptCall(call), rows] {
      kernels_->divided_loss(step, saved_call.call(), rows);
    });
  }
  void divided_scores(real::ScoreStep step, const real::Call& call, const real::ScoreRecords& records) override {
    enqueue([this, step, saved_call = real::KeptCall(call), records] {
      kernels_->divided_scores(step, saved_call.call(), records);
    });
  }
  void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const void* gradient,
              real::OptimizerState& state, const void* from, void* to) override {
    enqueue([this, &rule, options, count, gradient, state, from, to] {
      real::OptimizerState then = state;  // A copy, so that each launch of a graph starts from equal arguments.
      if (then.counter) then.steps = counted(then.counter);
      kernels_->update(rule, options, count, gradient, then, from, to);
    });
    ++state.steps;
  }
  void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
               const real::OptimizerState& state, const void* from, void* to) override {
    enqueue([this, &rule, direction, horizon, count, then = state, from, to] {
      kernels_->predict(rule, direction, horizon, count, then, from, to);
    });
  }
  void reconstruct(const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                   const real::OptimizerState& state, const void* from, void* to) override {
    enqueue([this, &rule, kind, delay, count, then = state, from, to] {
      kernels_->reconstruct(rule, kind, delay, count, then, from, to);
    });
  }

 private:
  int counted(const void* counter) const {
    return static_cast<int>(width() == sizeof(double) ? *static_cast<const double*>(counter)
                                                      : *static_cast<const float*>(counter));
  }
  template <class Work>
  void enqueue(Work work) {
    emulated_gpu::enqueue(stream_, std::move(work), 1e-5);
    cuda::submitted(stream_, "a kernel");
  }

  cudaStream_t stream_;
  std::unique_ptr<real::Kernels> kernels_;
};

inline std::unique_ptr<real::Kernels> queued_cpu(cudaStream_t stream, int, std::size_t width) {
  return std::make_unique<QueuedCpu>(stream, width);
}

}  // namespace stagecraft::test
