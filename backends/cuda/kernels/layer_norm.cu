#include "backends/cuda/kernels/rows.hpp"

namespace stagecraft::cuda {
namespace {

constexpr double kEpsilon = 1e-5;

/// What rows keep: (x - mean) / deviation, and 1 / deviation. A sample keeps all its rows of the first, then the
/// second.
template <class T>
struct SavedNorm {
  T* saved;
  std::int64_t rows, columns;  ///< Shape of one sample.
  __device__ T* sample(std::int64_t row) const { return saved + row / rows * (rows * columns + rows); }
  __device__ T* normal(std::int64_t row) const { return sample(row) + row % rows * columns; }
  __device__ T* inverse(std::int64_t row) const { return sample(row) + rows * columns + row % rows; }
};

template <class T>
SavedNorm<Wide<T>> saved_norm(const real::Call& call) {
  return {numbers<Wide<T>>(call.saved), call.operation->rows, call.operation->columns};
}

template <class T>
__global__ void forward_kernel(const T* inputs, const T* gamma, const T* beta, SavedNorm<Wide<T>> keep, T* outputs) {
  using Number = Wide<T>;
  const auto shared = shared_memory<Number>();
  const std::int64_t columns = keep.columns, row = blockIdx.x;
  const T* const x = inputs + row * columns;
  const auto count = static_cast<Number>(columns);
  const Number mean = row_sum<Number>(columns, shared, [x](std::int64_t i) -> Number { return x[i]; }) / count;
  const Number variance =
      row_sum<Number>(columns, shared, [x, mean](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
  const Number inverse = 1 / std::sqrt(variance + static_cast<Number>(kEpsilon));
  Number* const normal = keep.normal(row);
  T* const y = outputs + row * columns;
  if (threadIdx.x == 0) *keep.inverse(row) = inverse;
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    normal[i] = (x[i] - mean) * inverse;
    y[i] = static_cast<T>(normal[i] * gamma[i] + beta[i]);
  }
}

/// With g = d_output * gamma and n the normalised row: (g - mean(g) - n mean(g n)) / deviation.
template <class T>
__global__ void input_gradient_kernel(const T* gradients, const T* gamma, SavedNorm<Wide<T>> keep, bool add,
                                      T* outputs) {
  using Number = Wide<T>;
  const auto shared = shared_memory<Number>();
  const std::int64_t columns = keep.columns, row = blockIdx.x;
  const T* const gradient = gradients + row * columns;
  const Number *const normal = keep.normal(row), inverse = *keep.inverse(row);
  const auto count = static_cast<Number>(columns);
  const Number mean = row_sum<Number>(columns, shared, [=](std::int64_t i) { return gradient[i] * gamma[i]; }) / count;
  const Number along =
      row_sum<Number>(columns, shared, [=](std::int64_t i) { return gradient[i] * gamma[i] * normal[i]; }) / count;
  T* const to = outputs + row * columns;
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const Number value = inverse * (gradient[i] * gamma[i] - mean - normal[i] * along);
    to[i] = static_cast<T>(add ? to[i] + value : value);
  }
}

template <class T>
struct GammaTerm {
  const T* gradient;
  SavedNorm<Wide<T>> keep;
  __device__ Wide<T> operator()(std::int64_t row, std::int64_t column) const {
    return gradient[row * keep.columns + column] * keep.normal(row)[column];
  }
};

template <class T>
struct BetaTerm {
  const T* gradient;
  std::int64_t columns;
  __device__ Wide<T> operator()(std::int64_t row, std::int64_t column) const {
    return gradient[row * columns + column];
  }
};

template <class T>
void forward(const Device& device, const real::Call& call) {
  const unsigned threads = threads_for(call.operation->columns);
  const T* const gamma = static_cast<const T*>(call.weights);
  const T* const beta = gamma + real::second_block(*call.operation, sizeof(T));
  launch(forward_kernel<T>, dim3(static_cast<unsigned>(call.output.rows)), dim3(threads), threads * sizeof(Wide<T>),
         device.stream, numbers<T>(call.inputs[0]), gamma, beta, saved_norm<T>(call), numbers<T>(call.output));
}

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const unsigned threads = threads_for(call.operation->columns);
  launch(input_gradient_kernel<T>, dim3(static_cast<unsigned>(d_output.rows)), dim3(threads), threads * sizeof(Wide<T>),
         device.stream, numbers<T>(d_output), static_cast<const T*>(call.weights), saved_norm<T>(call), to.add,
         numbers<T>(to.tensor));
}

template <class T>
void weight_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const std::int64_t columns = call.operation->columns;
  auto* const d_gamma = static_cast<Wide<T>*>(d_weights);
  Wide<T>* const d_beta = d_gamma + real::second_block(*call.operation, sizeof(T));
  const T* const gradient = numbers<T>(d_output);
  add_column_sums(device, d_output.rows, columns, GammaTerm<T>{gradient, saved_norm<T>(call)}, d_gamma);
  add_column_sums(device, d_output.rows, columns, BetaTerm<T>{gradient, columns}, d_beta);
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
