// Ring attention: keys and values come part by part from the devices of a context group, and each part rescales the
// softmax so far. Forward and gradients.

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/attention_rows.hpp"

namespace stagecraft::cpu {
namespace {

/// One head of one sample: its queries, the part of the keys and values, and the statistics of its rows.
template <class T>
struct HeadPart {
  MatrixView<T> q, k, v, output;
  T *largest, *sums;
};

/// `keys` and `output` may be gradients, with the queries `d_input`.
template <class T>
HeadPart<T> head_part(const real::Call& call, const real::Tensor& input, const real::Tensor& keys,
                      const real::Tensor& output, std::int64_t sample, std::int64_t head) {
  const Operation& op = *call.operation;
  const HeadShape s = head_shape(op);
  const std::int64_t rows = op.rows, part_rows = keys.rows / call.samples;
  const std::int64_t shared = head / (s.heads / s.key_value_heads);
  T* const k = numbers<T>(keys) + sample * part_rows * keys.columns + shared * s.query;
  T* const v = numbers<T>(keys) + sample * part_rows * keys.columns + std::int64_t{s.key_value_heads} * s.query +
               shared * s.value;
  T* const statistics = numbers<T>(call.saved) + (sample * op.heads + head) * 2 * rows;
  return {view(numbers<T>(input) + sample * rows * input.columns + head * s.query, rows, s.query, input.columns),
          view(k, part_rows, s.query, keys.columns),
          view(v, part_rows, s.value, keys.columns),
          view(numbers<T>(output) + sample * rows * output.columns + head * s.value, rows, s.value, output.columns),
          statistics,
          statistics + rows};
}

/// The columns of the part that a query looks at.
struct SeenKeys {
  std::int64_t first = 0, count = 0;
  SeenKeys(const real::Call& call, const real::KeyPart& part, std::int64_t part_rows, std::int64_t row) {
    const Operation& op = *call.operation;
    const std::int64_t end = op.causal ? call.first_row + row + 1 : part.all_rows;
    const std::int64_t begin = op.window > 0 ? std::max<std::int64_t>(0, end - op.window) : 0;
    first = std::clamp<std::int64_t>(begin - part.first_row, 0, part_rows);
    count = std::max<std::int64_t>(0, std::clamp<std::int64_t>(end - part.first_row, 0, part_rows) - first);
  }
};

template <class T>
void scale_row(const MatrixView<T>& matrix, std::int64_t row, T factor) {
  T* const values = matrix.row(row);
  put(false, matrix.columns, values, [=](std::int64_t i) { return factor * values[i]; });
}

/// Turns scores into exp(score - largest) and takes them into the statistics of the row; returns the factor by which
/// what was summed before shrinks.
template <class T>
T take_in(std::int64_t count, T scale, T* scores, T& largest, T& sum_so_far) {
  const T before = largest;
  const T here = joined(
      count, -std::numeric_limits<T>::infinity(), [=](std::int64_t i) { return scale * scores[i]; },
      [](T a, T b) { return a < b ? b : a; });
  largest = std::max(before, here);
  put(false, count, scores, [=, top = largest](std::int64_t i) { return real::exponential(scale * scores[i] - top); });
  const T factor = std::isinf(before) ? T{0} : real::exponential(before - largest);
  sum_so_far = factor * sum_so_far + sum<T>(count, [scores](std::int64_t i) { return scores[i]; });
  return factor;
}

}  // namespace

template <class T, bool kMixed>
void attention_part(const real::Call& call, const real::KeyPart& part, MemoryPool& pool) {
  const Operation& op = *call.operation;
  const std::int64_t rows = op.rows, part_rows = part.keys.rows / call.samples;
  const Scratch<T> scratch(pool, rows * part_rows);
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t head = 0; head < op.heads; ++head) {
      HeadPart<T> x = head_part<T>(call, call.inputs[0], part.keys, call.output, sample, head);
      const MatrixView<T> scores = view(scratch.data(), rows, part_rows);
      multiply_second_transposed(false, scores, x.q, x.k);
      for (std::int64_t row = 0; row < rows; ++row) {
        if (part.is_first) {
          x.largest[row] = -std::numeric_limits<T>::infinity();
          x.sums[row] = 0;
          std::fill_n(x.output.row(row), x.output.columns, T{0});
        }
        T* const line = scratch.data() + row * part_rows;
        const SeenKeys seen(call, part, part_rows, row);
        if (seen.count > 0)
          scale_row(x.output, row,
                    take_in<T>(seen.count, score_scale<T>(op), line + seen.first, x.largest[row], x.sums[row]));
        std::fill(line, line + seen.first, T{0});
        std::fill(line + seen.first + seen.count, line + part_rows, T{0});
      }
      round_factor<T, kMixed>(rows * part_rows, scratch.data());
      multiply(true, x.output, scores, x.v);
      if (!part.is_last) continue;
      for (std::int64_t row = 0; row < rows; ++row) scale_row(x.output, row, 1 / x.sums[row]);
    }
}

template <class T, bool kMixed>
void attention_part_gradient(const real::Call& call, const real::KeyPart& part, const real::Tensor& d_output,
                             const real::Tensor& d_input, const real::Tensor& d_keys, MemoryPool& pool) {
  const Operation& op = *call.operation;
  const std::int64_t rows = op.rows, part_rows = part.keys.rows / call.samples;
  const Scratch<T> first_scratch(pool, rows * part_rows), second_scratch(pool, rows * part_rows);
  const T scale = score_scale<T>(op);
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t head = 0; head < op.heads; ++head) {
      const HeadPart<T> x = head_part<T>(call, call.inputs[0], part.keys, call.output, sample, head);
      const HeadPart<T> d = head_part<T>(call, d_input, d_keys, d_output, sample, head);
      const MatrixView<T> p = view(first_scratch.data(), rows, part_rows);
      const MatrixView<T> d_scores = view(second_scratch.data(), rows, part_rows);
      multiply_second_transposed(false, p, x.q, x.k);
      multiply_second_transposed(false, d_scores, d.output, x.v);
      for (std::int64_t row = 0; row < rows; ++row) {
        const SeenKeys seen(call, part, part_rows, row);
        T *const line = first_scratch.data() + row * part_rows, *const d_line = second_scratch.data() + row * part_rows;
        std::fill(line, line + seen.first, T{0});
        std::fill(line + seen.first + seen.count, line + part_rows, T{0});
        const T *const dy = d.output.row(row), *const y = x.output.row(row);
        const T along = sum<T>(x.output.columns, [=](std::int64_t i) { return dy[i] * y[i]; });
        const T top = x.largest[row], inverse = 1 / x.sums[row];
        T* const s = line + seen.first;
        put(false, seen.count, s, [=](std::int64_t i) { return real::exponential(scale * s[i] - top) * inverse; });
        put(false, part_rows, d_line, [=](std::int64_t i) { return scale * line[i] * (d_line[i] - along); });
      }
      round_factor<T, kMixed>(rows * part_rows, first_scratch.data());
      round_factor<T, kMixed>(rows * part_rows, second_scratch.data());
      multiply_first_transposed(true, d.v, p, d.output);
      multiply(true, d.q, d_scores, x.k);
      multiply_first_transposed(true, d.k, d_scores, x.q);
    }
}

template void attention_part<float>(const real::Call&, const real::KeyPart&, MemoryPool&);
template void attention_part<float, true>(const real::Call&, const real::KeyPart&, MemoryPool&);
template void attention_part<double>(const real::Call&, const real::KeyPart&, MemoryPool&);
template void attention_part_gradient<float>(const real::Call&, const real::KeyPart&, const real::Tensor&,
                                             const real::Tensor&, const real::Tensor&, MemoryPool&);
template void attention_part_gradient<float, true>(const real::Call&, const real::KeyPart&, const real::Tensor&,
                                                   const real::Tensor&, const real::Tensor&, MemoryPool&);
template void attention_part_gradient<double>(const real::Call&, const real::KeyPart&, const real::Tensor&,
                                              const real::Tensor&, const real::Tensor&, MemoryPool&);

}  // namespace stagecraft::cpu
