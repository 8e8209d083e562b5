// Rotary position embeddings: forward, and the opposite rotation of gradients.

#include <vector>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"
#include "backends/real/formulas/rotary.hpp"

namespace stagecraft::cpu {
namespace {

/// Copies rows and turns the pairs of each head by their angle, or back.
template <class T>
void turn_rows(const Operation& op, std::int64_t first_row, std::int64_t rows, bool back, bool add, const T* from,
               T* to) {
  const std::int64_t columns = op.columns, half = op.rotary / 2;
  std::vector<real::Turn<T>> turns;
  for (std::int64_t row = 0; row < op.rows; ++row)
    for (std::int64_t pair = 0; pair < half; ++pair) {
      const real::Turn<T> turn(op.rotary, first_row + row, pair);
      turns.push_back(back ? turn.back() : turn);
    }
  for (std::int64_t row = 0; row < rows; ++row, from += columns, to += columns) {
    const real::Turn<T>* const angles = turns.data() + row % op.rows * half;
    std::int64_t done = 0;
    for (std::int64_t head = 0; head < op.heads; ++head) {
      const std::int64_t first = (head + 1) * op.head_width - op.rotary;
      put(add, first - done, to + done, [x = from + done](std::int64_t i) { return x[i]; });
      const T *const x = from + first, *const y = x + half;
      put(add, half, to + first, [=](std::int64_t i) { return angles[i].first(x[i], y[i]); });
      put(add, half, to + first + half, [=](std::int64_t i) { return angles[i].second(x[i], y[i]); });
      done = first + op.rotary;
    }
    put(add, columns - done, to + done, [x = from + done](std::int64_t i) { return x[i]; });
  }
}

template <class T>
void forward(const real::Call& call) {
  turn_rows<T>(*call.operation, call.first_row, call.output.rows, false, false, numbers<T>(call.inputs[0]),
               numbers<T>(call.output));
}

template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (to.tensor)
    turn_rows<T>(*call.operation, call.first_row, d_output.rows, true, to.add, numbers<T>(d_output),
                 numbers<T>(to.tensor));
}

}  // namespace

template <class T>
OperationKernels rotary_kernels() {
  return {forward<T>, input_gradient<T>, nullptr};
}
template OperationKernels rotary_kernels<float>();
template OperationKernels rotary_kernels<double>();

}  // namespace stagecraft::cpu
