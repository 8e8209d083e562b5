#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/model/operation.hpp"
#include "sim/training/optimizer.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft::real {

/// Row-major numbers of the kernels' type, in memory of the device, at a multiple of 64 bytes.
struct Tensor {
  void* data = nullptr;
  std::int64_t rows = 0, columns = 0;

  std::int64_t size() const { return rows * columns; }
  explicit operator bool() const { return data != nullptr; }
};

/// What an operation keeps from forward to backward.
struct Keeps {
  bool inputs = false, output = false;
  std::int64_t numbers = 0;  ///< Size of `saved` for one sample.
};
Keeps keeps(const Operation&);

/// Whether every real backend has a kernel for this operation. A backend may have more.
bool has_kernel(const Operation&);

/// Where the weights of an operation lie inside the weights of its stage: every block starts at a multiple of 64 bytes,
/// counted in numbers of `width` bytes. Linear: W, bias. LayerNorm: gamma, beta. Embedding: words, positions.
struct Blocks {
  std::int64_t first = 0, second = 0, total = 0;
};
Blocks blocks(const Operation&, std::size_t width);
std::int64_t second_block(const Operation&, std::size_t width);  ///< Its offset, in numbers.

/// One operation on the samples of one micro-batch.
struct Call {
  const Operation* operation = nullptr;
  std::int64_t samples = 1;
  std::span<const Tensor> inputs;  ///< A loss has two: the outputs of the net, and the targets.
  const void* weights = nullptr;   ///< Weights of this operation.
  Tensor output;                   ///< A loss writes one number.
  Tensor saved;                    ///< `keeps(operation).numbers` for each sample, in one row a sample.
  double scale = 1;                ///< For a loss: 1 / samples that one update averages; 1 for SumSquare.
};

/// Gradient of an input, written or added to. A tensor without data: the gradient is not needed.
struct Gradient {
  Tensor tensor;
  bool add = false;
};

/// State of an optimizer for the weights of one stage. `first` is momentum, `second` the mean of squares; `last` the
/// last gradient, `bare` the momentum of bare gradients, `average` what a reconstruction needs; null where not kept.
struct OptimizerState {
  void *first = nullptr, *second = nullptr, *last = nullptr, *bare = nullptr, *average = nullptr;
  int steps = 0;            ///< Steps done so far.
  void* counter = nullptr;  ///< Device memory in which the device counts steps itself; null: the host passes `steps`.
};

/// Constants of one update in addition to the rule: PipeMare's factor of the learning rate, and the delay of the stage.
struct UpdateOptions {
  double rate_scale = 1;
  int delay = 0;  ///< Most updates between a forward and its backward.
  bool spike_compensation = false;
  Reconstruction reconstruction = Reconstruction::UpdateAverage;  ///< Which average `average` is.
};

/// The arithmetic of one device, in one number type. Calls take effect in order. Gradients of weights are added to what
/// is there, in the order of the calls; nothing depends on addresses, so equal calls give equal bits. One thread
/// computes at a time; memory, copy and add may be called by others meanwhile, for messages.
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual std::size_t width() const = 0;  ///< Bytes of a number.

  virtual void* allocate(std::size_t bytes) = 0;  ///< At a multiple of 64 bytes; BackendError when there is none.
  virtual void release(void*, std::size_t bytes) = 0;
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  virtual void zero(void*, std::size_t bytes) = 0;
  virtual void upload(std::span<const double> from, void* to) = 0;
  virtual void download(const void* from, std::span<double> to) = 0;
  virtual bool finite(Tensor) = 0;

  virtual void forward(const Call&) = 0;
  /// `d_inputs` has one entry for each input of the operation, without the targets.
  virtual void input_gradient(const Call&, Tensor d_output, std::span<const Gradient> d_inputs) = 0;
  virtual void weight_gradient(const Call&, Tensor d_output, void* d_weights) = 0;
  virtual void add(Tensor from, Tensor to) = 0;
  virtual void scale(double factor, Tensor) = 0;

  /// `to` may be `from`: then in place.
  virtual void update(const OptimizerRule&, const UpdateOptions&, std::int64_t count, const void* gradient,
                      OptimizerState&, const void* from, void* to) = 0;
  /// W - lr * horizon * direction.
  virtual void predict(const OptimizerRule&, Direction, int horizon, std::int64_t count, const OptimizerState&,
                       const void* from, void* to) = 0;
  virtual void reconstruct(const OptimizerRule&, Reconstruction, int delay, std::int64_t count, const OptimizerState&,
                           const void* from, void* to) = 0;
};

/// A call that is made later; it owns its list of inputs.
class KeptCall {
 public:
  explicit KeptCall(const Call& call) : call_(call), inputs_(call.inputs.begin(), call.inputs.end()) {}
  Call call() const {
    Call call = call_;
    call.inputs = inputs_;
    return call;
  }

 private:
  Call call_;
  std::vector<Tensor> inputs_;
};

}  // namespace stagecraft::real
