// Embeddings of words, with or without learned positions: rows of their tables, and the gradients of the tables.
#include <algorithm>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

/// The row of a word in the weights that are here; -1: another device has it.
template <class T>
std::int64_t row_of_word(const real::Call& call, T number) {
  const Operation& op = *call.operation;
  if (call.words == 0) return whole_number(number, op.inner, "word", op);
  const std::int64_t word = whole_number(number, call.words, "word", op) - call.first_word;
  return word >= 0 && word < op.inner ? word : -1;
}

template <class T>
void forward(const real::Call& call) {
  const Operation& op = *call.operation;
  const T* const input = numbers<T>(call.inputs[0]);
  const T* const words = static_cast<const T*>(call.weights);
  const T* const positions = words + real::second_block(op, sizeof(T));
  const std::int64_t rows = call.output.rows / call.samples;
  for (std::int64_t row = 0; row < call.output.rows; ++row) {
    const std::int64_t number = row_of_word(call, input[row]);
    const T* const word = words + number * op.columns;
    T* const to = numbers<T>(call.output) + row * op.columns;
    const T* const position = positions + (call.first_row + row % rows) * op.columns;
    if (number < 0)
      put(false, op.columns, to, [=](std::int64_t i) { return op.positions ? position[i] : T{0}; });
    else if (op.positions)
      put(false, op.columns, to, [=](std::int64_t i) { return word[i] + position[i]; });
    else
      put(false, op.columns, to, [=](std::int64_t i) { return word[i]; });
  }
}

/// A word is a name: its number has no slope.
template <class T>
void input_gradient(const real::Call&, const real::Tensor&, std::span<const real::Gradient> d_inputs, MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (to.tensor && !to.add) std::fill_n(numbers<T>(to.tensor), to.tensor.size(), T{0});
}

template <class T>
void weight_gradient(const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const Operation& op = *call.operation;
  const T* const input = numbers<T>(call.inputs[0]);
  T* const d_words = static_cast<T*>(d_weights);
  T* const d_positions = d_words + real::second_block(op, sizeof(T));
  const std::int64_t rows = d_output.rows / call.samples;
  for (std::int64_t row = 0; row < d_output.rows; ++row) {
    const T* const gradient = numbers<T>(d_output) + row * op.columns;
    const auto value = [=](std::int64_t i) { return gradient[i]; };
    if (const std::int64_t number = row_of_word(call, input[row]); number >= 0)
      put(true, op.columns, d_words + number * op.columns, value);
    if (op.positions) put(true, op.columns, d_positions + (call.first_row + row % rows) * op.columns, value);
  }
}

}  // namespace

template <class T>
OperationKernels embedding_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels embedding_kernels<float>();
template OperationKernels embedding_kernels<double>();

}  // namespace stagecraft::cpu
