#pragma once

#include <fmt/core.h>
#include <cmath>
#include <cstdint>
#include <span>

#include "backends/cpu/memory_pool.hpp"
#include "backends/real/kernels.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/model/operation.hpp"

namespace stagecraft::cpu {

/// The three computations of one kind of operation; null where it has none.
struct OperationKernels {
  void (*forward)(const real::Call&) = nullptr;
  void (*input_gradient)(const real::Call&, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                         MemoryPool& scratch) = nullptr;
  void (*weight_gradient)(const real::Call&, const real::Tensor& d_output, void* d_weights) = nullptr;
};

/// T is float or double.
template <class T>
OperationKernels linear_kernels();
template <class T>
OperationKernels layer_norm_kernels();
template <class T>
OperationKernels rms_norm_kernels();
template <class T>
OperationKernels head_norm_kernels();
template <class T>
OperationKernels slice_kernels();
template <class T>
OperationKernels dispatch_kernels();
template <class T>
OperationKernels grouped_linear_kernels();
template <class T>
OperationKernels combine_kernels();
template <class T>
OperationKernels silu_kernels();
template <class T>
OperationKernels gated_silu_kernels();
template <class T>
OperationKernels rotary_kernels();
template <class T>
OperationKernels relu_kernels();
template <class T>
OperationKernels tanh_kernels();
template <class T>
OperationKernels gelu_kernels();
template <class T>
OperationKernels attention_kernels();
/// Attention in floats that rounds probabilities, and the gradients of scores, to 16 bits.
OperationKernels mixed_attention_kernels();
template <class T>
OperationKernels embedding_kernels();
template <class T>
OperationKernels add_kernels();
template <class T>
OperationKernels concat_kernels();
template <class T>
OperationKernels prepend_kernels();
template <class T>
OperationKernels first_row_kernels();
template <class T>
OperationKernels tensor_kernels();
template <class T>
OperationKernels cross_entropy_kernels();
template <class T>
OperationKernels mean_square_kernels();
template <class T>
OperationKernels sum_square_kernels();

/// The `active` experts with the largest scores, the best one first; of equal scores, the first.
template <class T>
void choose_experts(const T* scores, int experts, int active, std::int32_t* chosen);

/// Attention whose keys and values are made from short vectors; it has three inputs.
template <class T>
void latent_attention(const real::Call&);
template <class T>
void latent_attention_gradient(const real::Call&, const real::Tensor& d_output, std::span<const real::Gradient>,
                               MemoryPool& scratch);

/// Attention over one part of the keys; see real::KeyPart. `kMixed`: probabilities, and gradients of scores, are
/// rounded to 16 bits.
template <class T, bool kMixed = false>
void attention_part(const real::Call&, const real::KeyPart&, MemoryPool& scratch);
template <class T, bool kMixed = false>
void attention_part_gradient(const real::Call&, const real::KeyPart&, const real::Tensor& d_output,
                             const real::Tensor& d_input, const real::Tensor& d_keys, MemoryPool& scratch);

/// One step of a cross entropy over classes that devices divide; see real::DividedLoss.
template <class T>
void divided_cross_entropy(real::DividedLossStep, const real::Call&, const real::DividedLoss&);
/// One step of a cross entropy over words that the ranks of a pipeline divide; see real::ScoreRecords.
template <class T>
void divided_scores(real::ScoreStep, const real::Call&, const real::ScoreRecords&);

template <class T>
T* numbers(const real::Tensor& tensor) {
  return static_cast<T*>(tensor.data);
}

/// A word or a class that the data of a task give as a number: whole, from 0, below `count`.
template <class T>
std::int64_t whole_number(T value, int count, const char* what, const Operation& op) {
  if (!(value >= 0 && value < static_cast<T>(count)) || value != std::floor(value))
    throw InputError(fmt::format("{}: {} {} is not known.", to_text(op), what, value),
                     fmt::format("Use whole numbers from 0 to {}.", count - 1));
  return static_cast<std::int64_t>(value);
}

}  // namespace stagecraft::cpu
