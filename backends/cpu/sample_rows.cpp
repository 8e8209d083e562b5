// Operations that change the number of rows of a sample: a learned row in front of the others, and the first row alone.
#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

template <class T>
void prepend(const real::Call& call) {
  const Operation& op = *call.operation;
  const std::int64_t columns = op.columns, rows = op.rows;
  const T* const token = static_cast<const T*>(call.weights);
  const T* const positions = token + real::second_block(op, sizeof(T));
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* const from = row == 0 ? token : numbers<T>(call.inputs[0]) + (sample * (rows - 1) + row - 1) * columns;
      const T* const position = positions + row * columns;
      put(false, columns, numbers<T>(call.output) + (sample * rows + row) * columns,
          [=](std::int64_t i) { return from[i] + position[i]; });
    }
}

template <class T>
void prepend_input_gradient(const real::Call& call, const real::Tensor& d_output,
                            std::span<const real::Gradient> d_inputs, MemoryPool&) {
  const std::int64_t rows = call.operation->rows, columns = call.operation->columns;
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    put(to.add, (rows - 1) * columns, numbers<T>(to.tensor) + sample * (rows - 1) * columns,
        [from = numbers<T>(d_output) + (sample * rows + 1) * columns](std::int64_t i) { return from[i]; });
}

template <class T>
void prepend_weight_gradient(const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const Operation& op = *call.operation;
  const std::int64_t numbers_of_sample = static_cast<std::int64_t>(op.rows) * op.columns;
  T* const d_token = static_cast<T*>(d_weights);
  T* const d_positions = d_token + real::second_block(op, sizeof(T));
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const auto value = [from = numbers<T>(d_output) + sample * numbers_of_sample](std::int64_t i) { return from[i]; };
    put(true, op.columns, d_token, value);
    put(true, numbers_of_sample, d_positions, value);
  }
}

template <class T>
void first_row(const real::Call& call) {
  const std::int64_t rows = call.operation->inner, columns = call.operation->columns;
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    put(false, columns, numbers<T>(call.output) + sample * columns,
        [from = numbers<T>(call.inputs[0]) + sample * rows * columns](std::int64_t i) { return from[i]; });
}

template <class T>
void first_row_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                        MemoryPool&) {
  const std::int64_t rows = call.operation->inner, columns = call.operation->columns;
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    T* const d_rows = numbers<T>(to.tensor) + sample * rows * columns;
    put(to.add, columns, d_rows, [from = numbers<T>(d_output) + sample * columns](std::int64_t i) { return from[i]; });
    if (!to.add) put(false, (rows - 1) * columns, d_rows + columns, [](std::int64_t) { return T{0}; });
  }
}

}  // namespace

template <class T>
OperationKernels prepend_kernels() {
  return {prepend<T>, prepend_input_gradient<T>, prepend_weight_gradient<T>};
}
template OperationKernels prepend_kernels<float>();
template OperationKernels prepend_kernels<double>();

template <class T>
OperationKernels first_row_kernels() {
  return {first_row<T>, first_row_gradient<T>};
}
template OperationKernels first_row_kernels<float>();
template OperationKernels first_row_kernels<double>();

}  // namespace stagecraft::cpu
