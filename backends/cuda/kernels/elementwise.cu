// Activations, sums of inputs and concatenations: forward and gradients. Kernels also add, scale, round, copy and
// compare arrays, and look for numbers that are not finite.
#include <type_traits>

#include "backends/cuda/kernels/each.hpp"
#include "backends/real/formulas/elementary.hpp"

namespace stagecraft::cuda {
namespace {

template <class T, class Function>
struct ValueAt {
  const T* x;
  __device__ Wide<T> operator()(std::int64_t i) const { return Function::value(x[i]); }
  __host__ __device__ auto arrays() { return std::tie(x); }
};

template <class T, class Function>
struct SlopeAt {
  const T *saved, *gradient;
  __device__ Wide<T> operator()(std::int64_t i) const { return gradient[i] * Function::slope(saved[i]); }
  __host__ __device__ auto arrays() { return std::tie(saved, gradient); }
};

template <class T, class Function>
void activation_forward(const Device& device, const real::Call& call) {
  put(device, false, call.output.size(), numbers<T>(call.output), ValueAt<T, Function>{numbers<T>(call.inputs[0])});
}

template <class T, class Function>
void activation_input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                               std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const T* const saved = numbers<T>(Function::keeps_output ? call.output : call.inputs[0]);
  put(device, to.add, d_output.size(), numbers<T>(to.tensor), SlopeAt<T, Function>{saved, numbers<T>(d_output)});
}

template <class T>
struct SumAt {
  const T *a, *b;
  __device__ Wide<T> operator()(std::int64_t i) const { return a[i] + b[i]; }
  __host__ __device__ auto arrays() { return std::tie(a, b); }
};

template <class T>
void add_forward(const Device& device, const real::Call& call) {
  const std::int64_t count = call.output.size();
  T* const to = numbers<T>(call.output);
  const T* const first = numbers<T>(call.inputs[0]);
  if (call.inputs.size() == 1) return put(device, false, count, to, At<T>{first});
  const SumAt<T> two{first, numbers<T>(call.inputs[1])};
  if (call.inputs.size() == 2) return put(device, false, count, to, two);
  if constexpr (std::is_same_v<T, Wide<T>>) {
    put(device, false, count, to, two);
    for (const real::Tensor& input : call.inputs.subspan(2)) put(device, true, count, to, At<T>{numbers<T>(input)});
  } else {
    const Scratch<Wide<T>> sum(*device.memory, count);  // The sum is rounded once.
    put(device, false, count, sum.data(), two);
    for (const real::Tensor& input : call.inputs.subspan(2))
      put(device, true, count, sum.data(), At<T>{numbers<T>(input)});
    put(device, false, count, to, At<Wide<T>>{sum.data()});
  }
}

template <class T>
void add_input_gradient(const Device& device, const real::Call&, const real::Tensor& d_output,
                        std::span<const real::Gradient> d_inputs) {
  for (const real::Gradient& to : d_inputs)
    if (to.tensor) put(device, to.add, d_output.size(), numbers<T>(to.tensor), At<T>{numbers<T>(d_output)});
}

template <class T>
struct LargerAt {
  const T *first, *second;
  __device__ T operator()(std::int64_t i) const { return first[i] < second[i] ? second[i] : first[i]; }
  __host__ __device__ auto arrays() { return std::tie(first, second); }
};

/// Rows of numbers, out of wider rows or into them.
template <class T>
struct CopyRows {
  bool add;
  const T* from;
  std::int64_t from_stride;
  T* to;
  std::int64_t to_stride;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    const T number = from[row * from_stride + column];
    T& place = to[row * to_stride + column];
    place = add ? static_cast<T>(place + number) : number;
  }
};

template <class T>
void concat_forward(const Device& device, const real::Call& call) {
  T* to = numbers<T>(call.output);
  for (const real::Tensor& x : call.inputs) {
    each_in_rows(device, x.rows, x.columns, CopyRows<T>{false, numbers<T>(x), x.columns, to, call.output.columns});
    to += x.columns;
  }
}

template <class T>
void concat_input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                           std::span<const real::Gradient> d_inputs) {
  const T* from = numbers<T>(d_output);
  for (std::size_t i = 0; i < d_inputs.size(); ++i) {
    const std::int64_t columns = call.inputs[i].columns;
    if (const real::Gradient& to = d_inputs[i]; to.tensor)
      each_in_rows(device, d_output.rows, columns,
                   CopyRows<T>{to.add, from, d_output.columns, numbers<T>(to.tensor), columns});
    from += columns;
  }
}

template <class T>
struct ScaledAt {
  Wide<T> factor;
  const T* x;
  __device__ Wide<T> operator()(std::int64_t i) const { return factor * x[i]; }
  __host__ __device__ auto arrays() { return std::tie(x); }
};

/// All bits of the exponent are set in infinities and in what is not a number.
template <class T>
struct FlagNotFinite {
  using Number = Wide<T>;
  using Bits = std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>;
  const T* x;
  int* flag;
  __device__ void operator()(std::int64_t i) const {
    constexpr Bits mask = sizeof(Number) == 4 ? Bits{0x7f800000U} : static_cast<Bits>(0x7ff0000000000000U);
    if ((std::bit_cast<Bits>(static_cast<Number>(x[i])) & mask) == mask) *flag = 1;
  }
};

template <class T, class Function>
OperationKernels activation() {
  return {activation_forward<T, Function>, activation_input_gradient<T, Function>, nullptr};
}

}  // namespace

template <class T>
OperationKernels relu_kernels() {
  return activation<T, real::Relu<Wide<T>>>();
}
template <class T>
OperationKernels tanh_kernels() {
  return activation<T, real::Tanh<Wide<T>>>();
}
template <class T>
OperationKernels gelu_kernels() {
  return activation<T, real::Gelu<Wide<T>>>();
}
template <class T>
OperationKernels silu_kernels() {
  return activation<T, real::Silu<Wide<T>>>();
}
template <class T>
OperationKernels add_kernels() {
  return {add_forward<T>, add_input_gradient<T>, nullptr};
}
template <class T>
OperationKernels concat_kernels() {
  return {concat_forward<T>, concat_input_gradient<T>, nullptr};
}
template <class From, class To>
void add(const Device& device, std::int64_t count, const From* from, To* to) {
  put(device, true, count, to, At<From>{from});
}
void narrow(const Device& device, std::int64_t count, const float* from, Bfloat16* to) {
  put(device, false, count, to, At<float>{from});
}
template <class T>
void copy_rows(const Device& device, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t columns) {
  each_in_rows(device, rows, columns, CopyRows<T>{false, from, from_stride, to, to_stride});
}
template <class T>
void maximum(const Device& device, std::int64_t count, const T* from, T* to) {
  put(device, false, count, to, LargerAt<T>{from, to});
}
template <class T>
void scale(const Device& device, std::int64_t count, Wide<T> factor, T* numbers) {
  put(device, false, count, numbers, ScaledAt<T>{factor, numbers});
}
template <class T>
void flag_not_finite(const Device& device, std::int64_t count, const T* numbers, int* flag) {
  each(device, count, FlagNotFinite<T>{numbers, flag});
}

template OperationKernels relu_kernels<float>();
template OperationKernels relu_kernels<double>();
template OperationKernels relu_kernels<Bfloat16>();
template OperationKernels tanh_kernels<float>();
template OperationKernels tanh_kernels<double>();
template OperationKernels tanh_kernels<Bfloat16>();
template OperationKernels gelu_kernels<float>();
template OperationKernels gelu_kernels<double>();
template OperationKernels gelu_kernels<Bfloat16>();
template OperationKernels silu_kernels<float>();
template OperationKernels silu_kernels<double>();
template OperationKernels silu_kernels<Bfloat16>();
template OperationKernels add_kernels<float>();
template OperationKernels add_kernels<double>();
template OperationKernels add_kernels<Bfloat16>();
template OperationKernels concat_kernels<float>();
template OperationKernels concat_kernels<double>();
template OperationKernels concat_kernels<Bfloat16>();
template void add(const Device&, std::int64_t, const float*, float*);
template void add(const Device&, std::int64_t, const double*, double*);
template void add(const Device&, std::int64_t, const Bfloat16*, Bfloat16*);
template void add(const Device&, std::int64_t, const Bfloat16*, float*);
template void copy_rows<float>(const Device&, const float*, std::int64_t, float*, std::int64_t, std::int64_t,
                               std::int64_t);
template void copy_rows<double>(const Device&, const double*, std::int64_t, double*, std::int64_t, std::int64_t,
                                std::int64_t);
template void copy_rows<Bfloat16>(const Device&, const Bfloat16*, std::int64_t, Bfloat16*, std::int64_t, std::int64_t,
                                  std::int64_t);
template void maximum<float>(const Device&, std::int64_t, const float*, float*);
template void maximum<double>(const Device&, std::int64_t, const double*, double*);
template void scale<float>(const Device&, std::int64_t, float, float*);
template void scale<double>(const Device&, std::int64_t, double, double*);
template void scale<Bfloat16>(const Device&, std::int64_t, float, Bfloat16*);
template void flag_not_finite<float>(const Device&, std::int64_t, const float*, int*);
template void flag_not_finite<double>(const Device&, std::int64_t, const double*, int*);
template void flag_not_finite<Bfloat16>(const Device&, std::int64_t, const Bfloat16*, int*);

}  // namespace stagecraft::cuda
