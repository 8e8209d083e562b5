#pragma once

#include <cstdint>
#include <span>

#include "backends/cuda/kernels/memory.hpp"
#include "backends/real/formulas/bfloat16.hpp"
#include "backends/real/kernels.hpp"

// The tables of kernels of the operations, forward and both gradients, which `kernels` selects from.

namespace stagecraft::cuda {

class Products;

using real::Bfloat16;
using real::Wide;

/// What the parts of the kernels of one device share.
struct Device {
  cudaStream_t stream{};
  int multiprocessors = 0;
  Memory* memory = nullptr;
  Products* products = nullptr;
};

/// The three computations of one kind of operation; null where it has none.
struct OperationKernels {
  void (*forward)(const Device&, const real::Call&) = nullptr;
  void (*input_gradient)(const Device&, const real::Call&, const real::Tensor& d_output,
                         std::span<const real::Gradient> d_inputs) = nullptr;
  void (*weight_gradient)(const Device&, const real::Call&, const real::Tensor& d_output, void* d_weights) = nullptr;
};

/// T is float, double or, in mixed precision, Bfloat16: the numbers that are not wide. Wide<T> is what they are
/// computed and summed in.
template <class T>
OperationKernels linear_kernels();
template <class T>
OperationKernels layer_norm_kernels();
template <class T>
OperationKernels relu_kernels();
template <class T>
OperationKernels tanh_kernels();
template <class T>
OperationKernels gelu_kernels();
template <class T>
OperationKernels silu_kernels();
template <class T>
OperationKernels gated_silu_kernels();
template <class T>
OperationKernels rms_norm_kernels();
template <class T>
OperationKernels rotary_kernels();
template <class T>
OperationKernels attention_kernels();
template <class T>
OperationKernels embedding_kernels();
template <class T>
OperationKernels add_kernels();
template <class T>
OperationKernels concat_kernels();
template <class T>
OperationKernels cross_entropy_kernels();
template <class T>
OperationKernels mean_square_kernels();
template <class T>
OperationKernels sum_square_kernels();

/// A linear layer and the GELU after it, or the gradients of a GELU and the linear layer behind it: by cuBLASLt in one
/// product where it can, else one by one. In numbers of 4 or 2 bytes; see real::Kernels.
template <class T>
void linear_with_gelu(const Device&, const real::Call& product, const real::Call& gelu);
template <class T>
void linear_gradient_with_gelu(const Device&, const real::Call& product, const real::Tensor& d_output,
                               const real::Gradient& between, const real::Call& gelu, const real::Gradient& d_input);

/// Attention by cuDNN, in mixed precision. It keeps less for the backward, so the size of what a call keeps says
/// whether it is meant. `library_saved_numbers`: that size for each sample; 0 where cuDNN does not compute this
/// attention.
std::int64_t library_saved_numbers(const Operation&, std::int64_t samples);
bool is_for_library(const real::Call&);
/// False where cuDNN has the forward alone: then the statistics that it keeps are enough for the kernels here.
bool library_has_gradient(const real::Call&);
void library_attention(const Device&, const real::Call&);
void library_attention_gradient(const Device&, const real::Call&, const real::Tensor& d_output, const real::Gradient&);

/// Experts, in numbers of 4 or 8 bytes.
template <class T>
OperationKernels grouped_linear_kernels();
template <class T>
OperationKernels dispatch_kernels();
template <class T>
OperationKernels combine_kernels();
template <class T>
void choose_experts(const Device&, const Operation&, const real::Tensor& scores, std::int32_t* chosen);

/// For devices that divide an operation; see real::Kernels.
template <class T>
void attention_part(const Device&, const real::Call&, const real::KeyPart&);
template <class T>
void attention_part_gradient(const Device&, const real::Call&, const real::KeyPart&, const real::Tensor& d_output,
                             const real::Tensor& d_input, const real::Tensor& d_keys);
template <class T>
void divided_cross_entropy(const Device&, real::DividedLossStep, const real::Call&, const real::DividedLoss&);
template <class T>
void divided_scores(const Device&, real::ScoreStep, const real::Call&, const real::ScoreRecords&);
template <class T>
void maximum(const Device&, std::int64_t count, const T* from, T* to);

template <class T>
void copy_rows(const Device&, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
               std::int64_t columns);
/// to += from, rounded once; `from` may be narrow where `to` is wide.
template <class From, class To>
void add(const Device&, std::int64_t count, const From* from, To* to);
void narrow(const Device&, std::int64_t count, const float* from, Bfloat16* to);
template <class T>
void scale(const Device&, std::int64_t count, Wide<T> factor, T* numbers);
/// Writes 1 to `flag` when one of them is not finite.
template <class T>
void flag_not_finite(const Device&, std::int64_t count, const T* numbers, int* flag);

template <class T>
void update(const Device&, const OptimizerRule&, const real::UpdateOptions&, std::int64_t count, const T* gradient,
            real::OptimizerState&, const T* from, T* to);
template <class T>
void predict(const Device&, const OptimizerRule&, Direction, int horizon, std::int64_t count,
             const real::OptimizerState&, const T* from, T* to);
template <class T>
void reconstruct(const Device&, const OptimizerRule&, Reconstruction, int delay, std::int64_t count,
                 const real::OptimizerState&, const T* from, T* to);

template <class T>
T* numbers(const real::Tensor& tensor) {
  return static_cast<T*>(tensor.data);
}

}  // namespace stagecraft::cuda
