// The `real::Kernels` of the cpu backend for floats and doubles: selects the kernel of each operation from the tables
// in this folder, and updates weights.

#include "backends/cpu/kernels.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"
#include "backends/real/formulas/predictions.hpp"
#include "backends/real/formulas/updates.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cpu {
namespace {

template <class T>
OperationKernels kernels_of_activation(OperationKind kind) {
  switch (kind) {
    case OperationKind::Relu:
      return relu_kernels<T>();
    case OperationKind::Tanh:
      return tanh_kernels<T>();
    case OperationKind::Gelu:
      return gelu_kernels<T>();
    case OperationKind::Silu:
      return silu_kernels<T>();
    case OperationKind::GatedSilu:
      return gated_silu_kernels<T>();
    default:  // No kernel: has_kernel() says so before a run.
      return {};
  }
}

template <class T>
OperationKernels kernels_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::Linear:
    case OperationKind::Router:  // It is a linear operation; others choose.
      return linear_kernels<T>();
    case OperationKind::LayerNorm:
      return layer_norm_kernels<T>();
    case OperationKind::Attention:
      return attention_kernels<T>();
    case OperationKind::Embedding:
      return embedding_kernels<T>();
    case OperationKind::Add:
      return add_kernels<T>();
    case OperationKind::Concat:
      return concat_kernels<T>();
    case OperationKind::RmsNorm:
      return rms_norm_kernels<T>();
    case OperationKind::HeadNorm:
      return head_norm_kernels<T>();
    case OperationKind::Slice:
      return slice_kernels<T>();
    case OperationKind::Dispatch:
      return dispatch_kernels<T>();
    case OperationKind::GroupedLinear:
      return grouped_linear_kernels<T>();
    case OperationKind::Combine:
      return combine_kernels<T>();
    case OperationKind::Rotary:
      return rotary_kernels<T>();
    case OperationKind::Prepend:
      return prepend_kernels<T>();
    case OperationKind::FirstRow:
      return first_row_kernels<T>();
    case OperationKind::Tensor:
      return tensor_kernels<T>();
    case OperationKind::CrossEntropy:
      return cross_entropy_kernels<T>();
    case OperationKind::MeanSquare:
      return mean_square_kernels<T>();
    case OperationKind::SumSquare:
      return sum_square_kernels<T>();
    default:
      return kernels_of_activation<T>(kind);
  }
}

/// All bits of the exponent are set in infinities and in what is not a number.
template <class T>
bool all_finite(std::int64_t count, const T* numbers) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits mask = sizeof(T) == 4 ? Bits{0x7f800000U} : static_cast<Bits>(0x7ff0000000000000U);
  Bits largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::bit_cast<Bits>(numbers[i]) & mask);
  return largest != mask;
}

template <class T>
class CpuKernels final : public real::Kernels {
 public:
  std::size_t width() const override { return sizeof(T); }

  void* allocate(std::size_t bytes) override { return pool_.allocate(bytes); }
  void release(void* block, std::size_t bytes) override { pool_.release(block, bytes); }
  void copy(const void* from, void* to, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void zero(void* to, std::size_t bytes) override {
    if (bytes > 0) std::memset(to, 0, bytes);
  }
  void upload(std::span<const double> from, void* to) override {
    std::transform(from.begin(), from.end(), static_cast<T*>(to), [](double x) { return static_cast<T>(x); });
  }
  void download(const void* from, std::span<double> to) override {
    std::copy_n(static_cast<const T*>(from), to.size(), to.begin());
  }
  bool finite(real::Tensor tensor) override { return all_finite(tensor.size(), numbers<T>(tensor)); }

  void forward(const real::Call& call) override {
    const auto kernel = kernels_of<T>(call.operation->kind).forward;
    STAGECRAFT_CHECK(kernel);
    kernel(call);
  }
  void input_gradient(const real::Call& call, real::Tensor d_output,
                      std::span<const real::Gradient> d_inputs) override {
    if (std::none_of(d_inputs.begin(), d_inputs.end(), [](const real::Gradient& d) { return bool(d.tensor); })) return;
    const auto kernel = kernels_of<T>(call.operation->kind).input_gradient;
    STAGECRAFT_CHECK(kernel);
    kernel(call, d_output, d_inputs, pool_);
  }
  void weight_gradient(const real::Call& call, real::Tensor d_output, void* d_weights) override {
    if (const auto kernel = kernels_of<T>(call.operation->kind).weight_gradient) kernel(call, d_output, d_weights);
  }
  void add(real::Tensor from, real::Tensor to) override {
    put(true, to.size(), numbers<T>(to), [x = numbers<T>(from)](std::int64_t i) { return x[i]; });
  }
  void scale(double factor, real::Tensor t) override {
    T* const x = numbers<T>(t);
    put(false, t.size(), x, [=, f = static_cast<T>(factor)](std::int64_t i) { return f * x[i]; });
  }

  void choose_experts(const Operation& op, real::Tensor scores, std::span<std::int32_t> experts) override {
    STAGECRAFT_CHECK(std::ssize(experts) == scores.rows * op.active);
    for (std::int64_t row = 0; row < scores.rows; ++row)
      cpu::choose_experts(numbers<T>(scores) + row * scores.columns, op.experts, op.active,
                          experts.data() + row * op.active);
  }
  void maximum(real::Tensor from, real::Tensor to) override {
    T* const x = numbers<T>(to);
    put(false, to.size(), x, [x, y = numbers<T>(from)](std::int64_t i) { return x[i] < y[i] ? y[i] : x[i]; });
  }
  void attention_part(const real::Call& call, const real::KeyPart& part) override {
    cpu::attention_part<T>(call, part, pool_);
  }
  void attention_part_gradient(const real::Call& call, const real::KeyPart& part, real::Tensor d_output,
                               real::Tensor d_input, real::Tensor d_keys) override {
    cpu::attention_part_gradient<T>(call, part, d_output, d_input, d_keys, pool_);
  }
  void divided_loss(real::DividedLossStep step, const real::Call& call, const real::DividedLoss& rows) override {
    divided_cross_entropy<T>(step, call, rows);
  }
  void divided_scores(real::ScoreStep step, const real::Call& call, const real::ScoreRecords& records) override {
    cpu::divided_scores<T>(step, call, records);
  }

  void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const void* gradient,
              real::OptimizerState& state, const void* from, void* to) override {
    cpu::update<T>(rule, options, count, as<const T>(gradient), state, as<const T>(from), as<T>(to));
  }
  void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
               const real::OptimizerState& state, const void* from, void* to) override {
    cpu::predict<T>(rule, direction, horizon, count, state, as<const T>(from), as<T>(to));
  }
  void reconstruct(const OptimizerRule& rule, Reconstruction reconstruction, int delay, std::int64_t count,
                   const real::OptimizerState& state, const void* from, void* to) override {
    cpu::reconstruct<T>(rule, reconstruction, delay, count, state, as<const T>(from), as<T>(to));
  }

 private:
  template <class To, class From>
  static To* as(From* data) {
    return static_cast<To*>(data);
  }

  MemoryPool pool_;
};

}  // namespace

// Attention with a mask of a window is always causal; sinks and routing limited to some nodes have no kernel.
bool has_kernel(const Operation& op) {
  switch (op.kind) {
    case OperationKind::HeadNorm:
    case OperationKind::Slice:
    case OperationKind::Router:
    case OperationKind::GroupedLinear:
    case OperationKind::Combine:
    case OperationKind::Prepend:
    case OperationKind::FirstRow:
      return true;
    case OperationKind::Tensor:
      return op.tensor->function != TensorFunction::Unknown;
    case OperationKind::Dispatch:
      return op.nodes == 0;
    case OperationKind::Attention:
      return !op.sinks && (op.window == 0 || op.causal);
    default:
      return real::has_kernel(op);
  }
}

std::unique_ptr<real::Kernels> make_kernels(std::size_t width, DeviceId) {
  if (width == real::kMixedWidth) return make_mixed_kernels();
  STAGECRAFT_CHECK(width == sizeof(float) || width == sizeof(double));
  if (width == sizeof(float)) return std::make_unique<CpuKernels<float>>();
  return std::make_unique<CpuKernels<double>>();
}

namespace {

/// In place and between arrays apart: a compiler makes vectors only of loops where it can rule out overlaps.
struct ForEach {
  template <class T, class Step>
  void operator()(std::int64_t count, const T* from, T* to, Step step) const {
    if (from == to)
      for (std::int64_t i = 0; i < count; ++i) to[i] = step(i, to[i]);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = step(i, from[i]);
  }
};

}  // namespace

template <class T>
void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const T* gradient,
            real::OptimizerState& state, const T* from, T* to) {
  real::update<T>(rule, options, count, gradient, state, from, to, ForEach{});
}

template <class T>
void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
             const real::OptimizerState& state, const T* from, T* to) {
  real::predict<T>(rule, direction, horizon, count, state, from, to, ForEach{});
}

template <class T>
void reconstruct(const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                 const real::OptimizerState& state, const T* from, T* to) {
  real::reconstruct<T>(rule, kind, delay, count, state, from, to, ForEach{});
}

template void update<float>(const OptimizerRule&, const real::UpdateOptions&, std::int64_t, const float*,
                            real::OptimizerState&, const float*, float*);
template void update<double>(const OptimizerRule&, const real::UpdateOptions&, std::int64_t, const double*,
                             real::OptimizerState&, const double*, double*);
template void predict<float>(const OptimizerRule&, Direction, int, std::int64_t, const real::OptimizerState&,
                             const float*, float*);
template void predict<double>(const OptimizerRule&, Direction, int, std::int64_t, const real::OptimizerState&,
                              const double*, double*);
template void reconstruct<float>(const OptimizerRule&, Reconstruction, int, std::int64_t, const real::OptimizerState&,
                                 const float*, float*);
template void reconstruct<double>(const OptimizerRule&, Reconstruction, int, std::int64_t, const real::OptimizerState&,
                                  const double*, double*);

}  // namespace stagecraft::cpu
