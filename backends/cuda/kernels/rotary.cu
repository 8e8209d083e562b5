// Rotary position embeddings: forward, and the opposite rotation of gradients.

#include "backends/cuda/kernels/each.hpp"
#include "backends/real/formulas/rotary.hpp"

namespace stagecraft::cuda {
namespace {

/// What a Rotary does to the rows of one position in all samples. A thread has a pair of numbers, which it turns in all
/// heads, because a sine takes longer than what is done with it; or it has a number that is copied.
template <class T>
struct TurnRows {
  int heads, head_width, rotary;
  std::int64_t first_row, rows, columns, samples;  ///< `rows`: of a sample.
  bool back, add;
  const T* from;
  T* to;

  explicit TurnRows(const Operation& op) : heads(op.heads), head_width(op.head_width), rotary(op.rotary) {}
  int pairs() const { return rotary / 2; }
  std::int64_t copied() const { return columns - std::int64_t{heads} * rotary; }

  __device__ void operator()(std::int64_t row, std::int64_t n) const {
    const int half = rotary / 2;
    if (n >= half) return copy(row, column_of(n - half));
    const real::Turn<Wide<T>> turn(rotary, first_row + row, n);
    for (std::int64_t sample = 0; sample < samples; ++sample)
      for (int head = 0; head < heads; ++head)
        turn_pair(back ? turn.back() : turn, (sample * rows + row) * columns + (head + 1) * head_width - rotary + n,
                  half);
  }

 private:
  /// The first numbers of each head are copied, and so is what lies after the heads.
  __device__ std::int64_t column_of(std::int64_t copied_number) const {
    const int each = head_width - rotary;
    if (copied_number >= std::int64_t{heads} * each) return copied_number + std::int64_t{heads} * rotary;
    return copied_number / each * head_width + copied_number % each;
  }
  __device__ void copy(std::int64_t row, std::int64_t column) const {
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const std::int64_t at = (sample * rows + row) * columns + column;
      put(at, from[at]);
    }
  }
  __device__ void turn_pair(const real::Turn<Wide<T>>& turn, std::int64_t at, int half) const {
    const Wide<T> x = from[at], y = from[at + half];
    put(at, turn.first(x, y));
    put(at + half, turn.second(x, y));
  }
  __device__ void put(std::int64_t at, Wide<T> value) const { to[at] = static_cast<T>(add ? to[at] + value : value); }
};

template <class T>
void turn_rows(const Device& device, const real::Call& call, bool back, bool add, const real::Tensor& from,
               const real::Tensor& to) {
  TurnRows<T> turn(*call.operation);
  turn.first_row = call.first_row;
  turn.rows = call.operation->rows, turn.columns = call.operation->columns, turn.samples = from.rows / turn.rows;
  turn.back = back, turn.add = add;
  turn.from = numbers<T>(from), turn.to = numbers<T>(to);
  each_in_rows(device, turn.rows, turn.pairs() + turn.copied(), turn);
}

template <class T>
void forward(const Device& device, const real::Call& call) {
  turn_rows<T>(device, call, false, false, call.inputs[0], call.output);
}

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (to.tensor) turn_rows<T>(device, call, true, to.add, d_output, to.tensor);
}

}  // namespace

template <class T>
OperationKernels rotary_kernels() {
  return {forward<T>, input_gradient<T>, nullptr};
}
template OperationKernels rotary_kernels<float>();
template OperationKernels rotary_kernels<double>();
template OperationKernels rotary_kernels<Bfloat16>();

}  // namespace stagecraft::cuda
