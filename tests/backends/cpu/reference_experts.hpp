#pragma once

#include <numeric>

#include "tests/backends/cpu/reference_data.hpp"

/// Norms of heads, attention with keys from short vectors, and experts, one number after the other.
namespace stagecraft::test {

inline std::vector<Real> reference_head_norm(const Trial& t, const ReferenceData& d) {
  const HeadShape shape = head_shape(t.op);
  std::vector<Real> y = d.inputs[0];
  for (int row = 0; row < t.rows(); ++row)
    for (int head = 0; head < shape.heads + shape.key_value_heads; ++head) {
      Real* const x = y.data() + static_cast<std::ptrdiff_t>(row) * t.op.columns + head * shape.query;
      Real square = 0;
      for (int i = 0; i < shape.query; ++i) square += x[i] * x[i] / shape.query;
      for (int i = 0; i < shape.query; ++i)
        x[i] *= d.weights[static_cast<std::size_t>(i) + (head < shape.heads ? 0 : d.second)] / std::sqrt(square + 1e-5);
    }
  return y;
}

inline std::vector<Real> reference_slice(const Trial& t, const ReferenceData& d) {
  std::vector<Real> y;
  for (int row = 0; row < t.rows(); ++row)
    for (int c = 0; c < t.op.columns; ++c)
      y.push_back(d.inputs[0][static_cast<std::size_t>(row * t.columns[0] + t.op.inner + c)]);
  return y;
}

/// Each head of K has separate numbers, next to the numbers of V, and numbers that all heads share.
inline std::vector<Real> reference_latent_attention(const Trial& t, const ReferenceData& d) {
  const HeadShape s = head_shape(t.op);
  const int shared = t.columns[2], plain = s.query - shared;
  const auto number = [&](int input, int sample, int row, int column) {
    return d.inputs[static_cast<std::size_t>(input)][static_cast<std::size_t>(
        (sample * t.op.rows + row) * t.columns[static_cast<std::size_t>(input)] + column)];
  };
  std::vector<Real> y;
  for (int sample = 0; sample < t.samples; ++sample)
    for (int row = 0; row < t.op.rows; ++row)
      for (int head = 0; head < s.heads; ++head) {
        std::vector<Real> scores;
        for (int other = 0; other <= row; ++other) {
          Real& score = scores.emplace_back(0);
          for (int i = 0; i < s.query; ++i)
            score += number(0, sample, row, head * s.query + i) *
                     (i < plain ? number(1, sample, other, head * (plain + s.value) + i)
                                : number(2, sample, other, i - plain));
          score /= std::sqrt(static_cast<Real>(s.query));
        }
        const std::vector<Real> p = softmax(scores);
        for (int c = 0; c < s.value; ++c) {
          Real& sum = y.emplace_back(0);
          for (int other = 0; other <= row; ++other)
            sum += p[static_cast<std::size_t>(other)] * number(1, sample, other, head * (plain + s.value) + plain + c);
        }
      }
  return y;
}

inline std::vector<Real> reference_dispatch(const Trial& t, const ReferenceData& d) {
  std::vector<Real> y;
  for (std::size_t copy = 0; copy < static_cast<std::size_t>(t.rows()); ++copy)
    for (std::size_t c = 0; c < static_cast<std::size_t>(t.op.columns); ++c)
      y.push_back(
          d.inputs[0][copy / static_cast<std::size_t>(t.op.active) * static_cast<std::size_t>(t.op.columns) + c]);
  return y;
}

inline std::vector<Real> reference_grouped_linear(const Trial& t, const ReferenceData& d) {
  std::vector<Real> y;
  for (std::int64_t row = 0; row < t.rows(); ++row) {
    std::int64_t expert = 0;
    while (t.expert_rows[static_cast<std::size_t>(expert) + 1] <= row) ++expert;
    for (std::int64_t c = 0; c < t.op.columns; ++c) {
      const std::int64_t at = expert * t.op.columns + c;
      Real sum = t.op.bias ? d.weights[d.second + static_cast<std::size_t>(at)] : 0;
      for (std::int64_t i = 0; i < t.op.inner; ++i)
        sum += d.inputs[0][static_cast<std::size_t>(row * t.op.inner + i)] *
               d.weights[static_cast<std::size_t>(at * t.op.inner + i)];
      y.push_back(sum);
    }
  }
  return y;
}

/// The experts by falling scores, as a stable sort has them.
inline std::vector<std::size_t> by_score(const Real* scores, int experts) {
  std::vector<std::size_t> order(static_cast<std::size_t>(experts));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  return order;
}

inline std::vector<Real> reference_combine(const Trial& t, const ReferenceData& d) {
  std::vector<Real> y;
  for (int row = 0; row < t.rows(); ++row) {
    const Real* const scores = d.inputs[1].data() + static_cast<std::ptrdiff_t>(row) * t.op.experts;
    const std::vector<std::size_t> order = by_score(scores, t.op.experts);
    std::vector<Real> chosen;
    for (int n = 0; n < t.op.active; ++n) chosen.push_back(scores[order[static_cast<std::size_t>(n)]]);
    const std::vector<Real> weights = softmax(chosen);
    for (int c = 0; c < t.op.columns; ++c) {
      Real& sum = y.emplace_back(0);
      for (int n = 0; n < t.op.active; ++n)
        sum += weights[static_cast<std::size_t>(n)] *
               d.inputs[0][static_cast<std::size_t>((row * t.op.active + n) * t.op.columns + c)];
    }
  }
  return y;
}

}  // namespace stagecraft::test
