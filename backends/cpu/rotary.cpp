#include <cmath>
#include <vector>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

constexpr double kBase = 10000;  // Su et al., 2021, section 3.2.2.

/// Cosine and sine of the angle that pair `pair` of a head has in row `row` of a sample: row * base^(-2 pair / rotary).
/// Numbers i and i + rotary/2 of what is turned in a head are pair i, as in the weights of Llama for transformers.
template <class T>
struct Turn {
  T cosine, sine;
  Turn(const Operation& op, std::int64_t row, std::int64_t pair) {
    const double angle = static_cast<double>(row) * std::pow(kBase, -2.0 * static_cast<double>(pair) / op.rotary);
    cosine = static_cast<T>(std::cos(angle)), sine = static_cast<T>(std::sin(angle));
  }
};

/// Copies rows and turns the pairs of each head by their angle, or back: (x, y) becomes (x c - y s, y c + x s).
template <class T>
void turn_rows(const Operation& op, std::int64_t first_row, std::int64_t rows, bool back, bool add, const T* from,
               T* to) {
  const std::int64_t columns = op.columns, half = op.rotary / 2;
  std::vector<Turn<T>> turns;
  for (std::int64_t row = 0; row < op.rows; ++row)
    for (std::int64_t pair = 0; pair < half; ++pair) turns.emplace_back(op, first_row + row, pair);
  for (std::int64_t row = 0; row < rows; ++row, from += columns, to += columns) {
    const Turn<T>* const angles = turns.data() + row % op.rows * half;
    const T side = back ? T{-1} : T{1};
    std::int64_t done = 0;
    for (std::int64_t head = 0; head < op.heads; ++head) {
      const std::int64_t first = (head + 1) * op.head_width - op.rotary;
      put(add, first - done, to + done, [x = from + done](std::int64_t i) { return x[i]; });
      const T *const x = from + first, *const y = x + half;
      put(add, half, to + first,
          [=](std::int64_t i) { return x[i] * angles[i].cosine - y[i] * (side * angles[i].sine); });
      put(add, half, to + first + half,
          [=](std::int64_t i) { return y[i] * angles[i].cosine + x[i] * (side * angles[i].sine); });
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

/// A rotation back: its matrix is the transposed one.
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
