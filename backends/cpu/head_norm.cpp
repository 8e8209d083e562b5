// RMS norm of each head of queries and keys: forward and gradients.

#include <cmath>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

constexpr double kEpsilon = 1e-5;

/// The heads of Q and K of a row, one after another; V follows them. A sample keeps the normalized heads of its rows,
/// then one over the root of the mean square of each.
struct NormedHeads {
  std::int64_t query_heads, heads, width, columns, rows;
  explicit NormedHeads(const Operation& op) {
    const HeadShape shape = head_shape(op);
    query_heads = shape.heads, heads = shape.heads + shape.key_value_heads, width = shape.query;
    columns = op.columns, rows = op.rows;
  }
  std::int64_t offset(std::int64_t row, std::int64_t head) const { return row * columns + head * width; }
  /// Where `saved` has the normalized head, and the number for it.
  std::int64_t normal(std::int64_t row, std::int64_t head) const {
    return row / rows * rows * heads * (width + 1) + (row % rows * heads + head) * width;
  }
  std::int64_t inverse(std::int64_t row, std::int64_t head) const {
    return (row / rows * (width + 1) + width) * rows * heads + row % rows * heads + head;
  }
};

/// Q and K have a gamma each.
template <class T>
const T* gamma_of(const real::Call& call, const NormedHeads& n, std::int64_t head) {
  const T* const gamma = static_cast<const T*>(call.weights);
  return head < n.query_heads ? gamma : gamma + real::second_block(*call.operation, sizeof(T));
}

template <class T>
void copy_values(const NormedHeads& n, std::int64_t row, bool add, const T* from, T* to) {
  const std::int64_t first = n.offset(row, n.heads);
  put(add, n.columns - n.heads * n.width, to + first, [x = from + first](std::int64_t i) { return x[i]; });
}

template <class T>
void forward(const real::Call& call) {
  const NormedHeads n(*call.operation);
  T *const saved = numbers<T>(call.saved), *const output = numbers<T>(call.output);
  const T* const input = numbers<T>(call.inputs[0]);
  for (std::int64_t row = 0; row < call.output.rows; ++row) {
    for (std::int64_t head = 0; head < n.heads; ++head) {
      const T *const x = input + n.offset(row, head), *const gamma = gamma_of<T>(call, n, head);
      const T square = sum<T>(n.width, [x](std::int64_t i) { return x[i] * x[i]; }) / static_cast<T>(n.width);
      const T inverse = 1 / std::sqrt(square + static_cast<T>(kEpsilon));
      T* const normal = saved + n.normal(row, head);
      saved[n.inverse(row, head)] = inverse;
      put(false, n.width, normal, [=](std::int64_t i) { return x[i] * inverse; });
      put(false, n.width, output + n.offset(row, head), [=](std::int64_t i) { return normal[i] * gamma[i]; });
    }
    copy_values(n, row, false, input, output);
  }
}

/// With g = d_output * gamma and n the normalized head: (g - n mean(g n)) / r.
template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const NormedHeads n(*call.operation);
  const T *const saved = numbers<T>(call.saved), *const dy = numbers<T>(d_output);
  for (std::int64_t row = 0; row < d_output.rows; ++row) {
    for (std::int64_t head = 0; head < n.heads; ++head) {
      const T *const d = dy + n.offset(row, head), *const gamma = gamma_of<T>(call, n, head);
      const T *const normal = saved + n.normal(row, head), inverse = saved[n.inverse(row, head)];
      const T along =
          sum<T>(n.width, [=](std::int64_t i) { return d[i] * gamma[i] * normal[i]; }) / static_cast<T>(n.width);
      put(to.add, n.width, numbers<T>(to.tensor) + n.offset(row, head),
          [=](std::int64_t i) { return inverse * (d[i] * gamma[i] - normal[i] * along); });
    }
    copy_values(n, row, to.add, dy, numbers<T>(to.tensor));
  }
}

template <class T>
void weight_gradient(const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const NormedHeads n(*call.operation);
  const T *const saved = numbers<T>(call.saved), *const dy = numbers<T>(d_output);
  T *const d_query = static_cast<T*>(d_weights), *const d_key =
                                                     d_query + real::second_block(*call.operation, sizeof(T));
  for (std::int64_t row = 0; row < d_output.rows; ++row)
    for (std::int64_t head = 0; head < n.heads; ++head)
      put(true, n.width, head < n.query_heads ? d_query : d_key,
          [normal = saved + n.normal(row, head), d = dy + n.offset(row, head)](std::int64_t i) {
            return d[i] * normal[i];
          });
}

}  // namespace

template <class T>
OperationKernels head_norm_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels head_norm_kernels<float>();
template OperationKernels head_norm_kernels<double>();

}  // namespace stagecraft::cpu
