// Layer norm of each row: forward and gradients.

#include "backends/cuda/kernels/norm_rows.hpp"

namespace stagecraft::cuda {
namespace {

template <class T, int kCount>
__global__ void forward_kernel(int rows, const T* inputs, const T* gamma, const T* beta, SavedNorm<Wide<T>> keep,
                               T* outputs) {
  using Number = Wide<T>;
  const WarpRow mine(rows, keep.columns);
  const std::int64_t begin = static_cast<std::int64_t>(mine.row) * keep.columns;
  const T* const x = inputs + begin;
  const auto count = static_cast<Number>(keep.columns);
  Number sum{};
  mine.each<kCount>([&](int i) {
    const auto pack = load<kCount>(x + i);
    for (int k = 0; k < kCount; ++k) sum += static_cast<Number>(pack.numbers[k]);
  });
  const Number mean = warp_sum(sum) / count;
  Number squares{};
  mine.each<kCount>([&](int i) {
    const auto pack = load<kCount>(x + i);
    for (int k = 0; k < kCount; ++k) squares += (pack.numbers[k] - mean) * (pack.numbers[k] - mean);
  });
  const Number inverse = 1 / std::sqrt(warp_sum(squares) / count + static_cast<Number>(kNormEpsilon));
  if (!mine.writes) return;
  Number* const normal = keep.normal(mine.row);
  if (threadIdx.x == 0) *keep.inverse(mine.row) = inverse;
  mine.each<kCount>([&](int i) {
    const auto pack = load<kCount>(x + i), scale = load<kCount>(gamma + i), shift = load<kCount>(beta + i);
    Pack<Number, kCount> normals;
    Pack<T, kCount> y;
    for (int k = 0; k < kCount; ++k) {
      normals.numbers[k] = (pack.numbers[k] - mean) * inverse;
      y.numbers[k] = static_cast<T>(normals.numbers[k] * scale.numbers[k] + shift.numbers[k]);
    }
    store<kCount>(normal + i, normals);
    store<kCount>(outputs + begin + i, y);
  });
}

/// With g = d_output * gamma and n the normalised row: (g - mean(g) - n mean(g n)) / deviation.
template <class T, int kCount>
__global__ void input_gradient_kernel(int rows, const T* gradients, const T* gamma, SavedNorm<Wide<T>> keep, bool add,
                                      T* outputs) {
  using Number = Wide<T>;
  const WarpRow mine(rows, keep.columns);
  const std::int64_t begin = static_cast<std::int64_t>(mine.row) * keep.columns;
  const T* const gradient = gradients + begin;
  const Number *const normal = keep.normal(mine.row), inverse = *keep.inverse(mine.row);
  const auto count = static_cast<Number>(keep.columns);
  Number sum{}, products{};
  mine.each<kCount>([&](int i) {
    const auto g = load<kCount>(gradient + i), scale = load<kCount>(gamma + i);
    const auto normals = load<kCount>(normal + i);
    for (int k = 0; k < kCount; ++k) {
      sum += g.numbers[k] * scale.numbers[k];
      products += g.numbers[k] * scale.numbers[k] * normals.numbers[k];
    }
  });
  const Number mean = warp_sum(sum) / count, along = warp_sum(products) / count;
  if (!mine.writes) return;
  T* const to = outputs + begin;
  mine.each<kCount>([&](int i) {
    const auto g = load<kCount>(gradient + i), scale = load<kCount>(gamma + i);
    const auto normals = load<kCount>(normal + i);
    Pack<T, kCount> result;
    if (add) result = load<kCount>(to + i);
    for (int k = 0; k < kCount; ++k) {
      const Number value = inverse * (g.numbers[k] * scale.numbers[k] - mean - normals.numbers[k] * along);
      result.numbers[k] = static_cast<T>(add ? result.numbers[k] + value : value);
    }
    store<kCount>(to + i, result);
  });
}

/// Terms of the gradients of gamma and beta.
template <class T>
struct AddTerms {
  const T* gradient;
  SavedNorm<Wide<T>> keep;
  __device__ void operator()(int row, int column, Wide<T>* sums) const {
    const Wide<T> g = gradient[static_cast<std::int64_t>(row) * keep.columns + column];
    sums[0] += g * keep.normal(row)[column];
    sums[1] += g;
  }
};

template <class T>
void forward(const Device& device, const real::Call& call) {
  const T *const gamma = static_cast<const T*>(call.weights), *const x = numbers<T>(call.inputs[0]);
  const T* const beta = gamma + real::second_block(*call.operation, sizeof(T));
  T* const y = numbers<T>(call.output);
  const bool packed = is_packed<T>(call, {x, gamma, beta, y, call.saved.data});
  launch_rows(device, call.output.rows, packed ? forward_kernel<T, kPacked<T>> : forward_kernel<T, 1>, x, gamma, beta,
              saved_norm<T>(call), y);
}

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const T* const gamma = static_cast<const T*>(call.weights);
  const bool packed = is_packed<T>(call, {d_output.data, gamma, to.tensor.data, call.saved.data});
  launch_rows(device, d_output.rows, packed ? input_gradient_kernel<T, kPacked<T>> : input_gradient_kernel<T, 1>,
              numbers<T>(d_output), gamma, saved_norm<T>(call), to.add, numbers<T>(to.tensor));
}

template <class T>
void weight_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  auto* const d_gamma = static_cast<Wide<T>*>(d_weights);
  Wide<T>* const d_beta = d_gamma + real::second_block(*call.operation, sizeof(T));
  add_column_sums<Wide<T>, 2>(device, d_output.rows, call.operation->columns,
                              AddTerms<T>{numbers<T>(d_output), saved_norm<T>(call)}, {{d_gamma, d_beta}});
}

}  // namespace

template <class T>
OperationKernels layer_norm_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels layer_norm_kernels<float>();
template OperationKernels layer_norm_kernels<double>();
template OperationKernels layer_norm_kernels<Bfloat16>();

}  // namespace stagecraft::cuda
