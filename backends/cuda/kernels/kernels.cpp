// The `real::Kernels` of one CUDA stream: selects the kernels of each operation by its kind and the width of its
// numbers.

#include "backends/cuda/kernels/kernels.hpp"

#include <algorithm>
#include <type_traits>

#include "backends/cuda/attention_plan.hpp"
#include "backends/cuda/driver.hpp"
#include "backends/cuda/kernels/matmul.hpp"
#include "backends/cuda/kernels/memory.hpp"
#include "backends/cuda/kernels/operations.hpp"
#include "backends/cuda/kernels/product_choices.hpp"
#include "backends/cuda/launch_limit.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

template <class T>
OperationKernels kernels_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::Linear:
      return linear_kernels<T>();
    case OperationKind::LayerNorm:
      return layer_norm_kernels<T>();
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
    case OperationKind::RmsNorm:
      return rms_norm_kernels<T>();
    case OperationKind::Rotary:
      return rotary_kernels<T>();
    case OperationKind::Attention:
      return attention_kernels<T>();
    case OperationKind::Embedding:
      return embedding_kernels<T>();
    case OperationKind::Add:
      return add_kernels<T>();
    case OperationKind::Concat:
      return concat_kernels<T>();
    case OperationKind::CrossEntropy:
      return cross_entropy_kernels<T>();
    case OperationKind::MeanSquare:
      return mean_square_kernels<T>();
    case OperationKind::SumSquare:
      return sum_square_kernels<T>();
    default:  // No kernel: has_kernel() says so before a run.
      return {};
  }
}

/// Operations without kernels for mixed precision, too.
template <class T>
OperationKernels unrounded_kernels_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::Router:
      return linear_kernels<T>();
    case OperationKind::GroupedLinear:
      return grouped_linear_kernels<T>();
    case OperationKind::Dispatch:
      return dispatch_kernels<T>();
    case OperationKind::Combine:
      return combine_kernels<T>();
    default:
      return kernels_of<T>(kind);
  }
}

template <class T>
class CudaKernels final : public real::Kernels {
  using Number = Wide<T>;
  static constexpr bool kIsUnrounded = std::is_same_v<T, Number>;  ///< Not in mixed precision, which has no experts.

 public:
  explicit CudaKernels(const KernelTarget& place)
      : memory_(place.stream),
        staging_(place.stream),
        products_(place, sizeof(T), memory_),
        device_{place.stream, place.multiprocessors, &memory_, &products_} {}
  std::size_t width() const override { return sizeof(T); }

  void* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  void release(void* block, std::size_t bytes) override { memory_.release(block, bytes); }
  void copy(const void* from, void* to, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device_.stream), "a copy on the device");
    submitted(device_.stream, "a copy on the device");
  }
  void copy_rows(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride, std::int64_t rows,
                 std::int64_t columns) override {
    cuda::copy_rows<T>(device_, static_cast<const T*>(from), from_stride, static_cast<T*>(to), to_stride, rows,
                       columns);
  }
  void zero(void* to, std::size_t bytes) override {
    check(cudaMemsetAsync(to, 0, bytes, device_.stream), "cudaMemsetAsync");
    submitted(device_.stream, "cudaMemsetAsync");
  }
  void upload(std::span<const double> from, void* to) override {
    staging_.upload(from.size() * sizeof(Number), to, [from](void* data) {
      std::transform(from.begin(), from.end(), static_cast<Number*>(data),
                     [](double x) { return static_cast<Number>(x); });
    });
  }
  void download(const void* from, std::span<double> to) override {
    staging_.download(to.size() * sizeof(Number), from,
                      [to](const void* data) { std::copy_n(static_cast<const Number*>(data), to.size(), to.begin()); });
  }
  void narrow(real::Tensor from, real::Tensor to) override {
    if constexpr (std::is_same_v<T, Bfloat16>)
      cuda::narrow(device_, to.size(), numbers<float>(from), numbers<Bfloat16>(to));
    else
      Kernels::narrow(from, to);
  }
  bool finite(real::Tensor tensor) override {
    const Scratch<int> flag(memory_, 1);
    zero(flag.data(), sizeof(int));
    if (tensor.is_wide)
      flag_not_finite<Number>(device_, tensor.size(), numbers<Number>(tensor), flag.data());
    else
      flag_not_finite<T>(device_, tensor.size(), numbers<T>(tensor), flag.data());
    int flag_value = 0;
    staging_.download(sizeof flag_value, flag.data(),
                      [&](const void* data) { flag_value = *static_cast<const int*>(data); });
    return flag_value == 0;
  }

  void choose_experts(const Operation& op, real::Tensor scores, std::span<std::int32_t> experts) override {
    if constexpr (kIsUnrounded) {
      const Scratch<std::int32_t> chosen(memory_, std::ssize(experts));
      cuda::choose_experts<T>(device_, op, scores, chosen.data());
      staging_.download(experts.size_bytes(), chosen.data(), [&](const void* data) {
        std::copy_n(static_cast<const std::int32_t*>(data), experts.size(), experts.begin());
      });
    } else {
      Kernels::choose_experts(op, scores, experts);
    }
  }

  std::int64_t saved_numbers(const Operation& op, std::int64_t samples) override {
    if constexpr (std::is_same_v<T, Bfloat16>)
      if (const std::int64_t numbers = library_saved_numbers(op, samples)) return numbers;
    return Kernels::saved_numbers(op, samples);
  }
  void forward(const real::Call& call) override {
    const auto kernel = operation_kernels(call.operation->kind).forward;
    STAGECRAFT_CHECK(kernel);
    kernel(device_, call);
  }
  void input_gradient(const real::Call& call, real::Tensor d_output,
                      std::span<const real::Gradient> d_inputs) override {
    if (std::none_of(d_inputs.begin(), d_inputs.end(), [](const real::Gradient& d) { return bool(d.tensor); })) return;
    const auto kernel = operation_kernels(call.operation->kind).input_gradient;
    STAGECRAFT_CHECK(kernel);
    kernel(device_, call, d_output, d_inputs);
  }
  void weight_gradient(const real::Call& call, real::Tensor d_output, void* d_weights) override {
    if (const auto kernel = operation_kernels(call.operation->kind).weight_gradient)
      kernel(device_, call, d_output, d_weights);
  }
  bool fuses_gelu() const override { return products_.may_fuse(); }
  void forward_with_gelu(const real::Call& product, const real::Call& gelu) override {
    if constexpr (!std::is_same_v<T, double>)
      linear_with_gelu<T>(device_, product, gelu);
    else
      Kernels::forward_with_gelu(product, gelu);
  }
  void input_gradient_with_gelu(const real::Call& product, real::Tensor d_output, const real::Gradient& between,
                                const real::Call& gelu, const real::Gradient& d_input) override {
    if constexpr (!std::is_same_v<T, double>)
      linear_gradient_with_gelu<T>(device_, product, d_output, between, gelu, d_input);
    else
      Kernels::input_gradient_with_gelu(product, d_output, between, gelu, d_input);
  }
  void add(real::Tensor from, real::Tensor to) override {
    if (to.is_wide && from.is_wide)
      cuda::add(device_, to.size(), numbers<Number>(from), numbers<Number>(to));
    else if (to.is_wide)
      cuda::add(device_, to.size(), numbers<T>(from), numbers<Number>(to));
    else
      cuda::add(device_, to.size(), numbers<T>(from), numbers<T>(to));
  }
  void scale(double factor, real::Tensor t) override {
    if (t.is_wide)
      cuda::scale<Number>(device_, t.size(), static_cast<Number>(factor), numbers<Number>(t));
    else
      cuda::scale<T>(device_, t.size(), static_cast<Number>(factor), numbers<T>(t));
  }

  void maximum(real::Tensor from, real::Tensor to) override {
    cuda::maximum<Number>(device_, to.size(), numbers<Number>(from), numbers<Number>(to));
  }
  void attention_part(const real::Call& call, const real::KeyPart& part) override {
    cuda::attention_part<T>(device_, call, part);
  }
  void attention_part_gradient(const real::Call& call, const real::KeyPart& part, real::Tensor d_output,
                               real::Tensor d_input, real::Tensor d_keys) override {
    cuda::attention_part_gradient<T>(device_, call, part, d_output, d_input, d_keys);
  }
  void divided_loss(real::DividedLossStep step, const real::Call& call, const real::DividedLoss& rows) override {
    cuda::divided_cross_entropy<T>(device_, step, call, rows);
  }
  void divided_scores(real::ScoreStep step, const real::Call& call, const real::ScoreRecords& records) override {
    cuda::divided_scores<T>(device_, step, call, records);
  }

  void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const void* gradient,
              real::OptimizerState& state, const void* from, void* to) override {
    cuda::update<Number>(device_, rule, options, count, static_cast<const Number*>(gradient), state,
                         static_cast<const Number*>(from), static_cast<Number*>(to));
  }
  void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
               const real::OptimizerState& state, const void* from, void* to) override {
    cuda::predict<Number>(device_, rule, direction, horizon, count, state, static_cast<const Number*>(from),
                          static_cast<Number*>(to));
  }
  void reconstruct(const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                   const real::OptimizerState& state, const void* from, void* to) override {
    cuda::reconstruct<Number>(device_, rule, kind, delay, count, state, static_cast<const Number*>(from),
                              static_cast<Number*>(to));
  }

 private:
  static OperationKernels operation_kernels(OperationKind kind) {
    if constexpr (kIsUnrounded)
      return unrounded_kernels_of<T>(kind);
    else
      return kernels_of<T>(kind);
  }

  Memory memory_;
  Staging staging_;
  Products products_;
  Device device_;
};

}  // namespace

bool has_kernel(const Operation& op) {
  switch (op.kind) {
    case OperationKind::Router:
    case OperationKind::GroupedLinear:
    case OperationKind::Combine:
      return true;
    case OperationKind::Dispatch:
      return op.nodes == 0;
    default:
      return real::has_kernel(op);
  }
}

std::unique_ptr<real::Kernels> make_kernels(const KernelTarget& place, std::size_t width) {
  if (width == real::kMixedWidth) return std::make_unique<CudaKernels<Bfloat16>>(place);
  STAGECRAFT_CHECK(width == sizeof(float) || width == sizeof(double));
  if (width == sizeof(float)) return std::make_unique<CudaKernels<float>>(place);
  return std::make_unique<CudaKernels<double>>(place);
}

std::vector<std::string> timed_products() { return ProductChoices::of_process().texts(); }
std::vector<std::string> attention_choices() { return AttentionPlans::choices(); }

}  // namespace stagecraft::cuda
