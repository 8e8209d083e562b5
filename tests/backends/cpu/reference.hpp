#pragma once

#include <complex>

#include "tests/backends/cpu/reference_experts.hpp"

/// Every operation again, as its definition in sim/model/operation.hpp says, one number after the other.
namespace stagecraft::test {

inline std::vector<Real> reference_linear(const Trial& t, const ReferenceData& d) {
  const auto columns = static_cast<std::size_t>(t.op.columns), inner = static_cast<std::size_t>(t.op.inner);
  std::vector<Real> y;
  for (std::size_t row = 0; row < d.inputs[0].size() / inner; ++row)
    for (std::size_t c = 0; c < columns; ++c) {
      Real sum = t.op.bias ? d.weights[d.second + c] : 0;
      for (std::size_t i = 0; i < inner; ++i) sum += d.inputs[0][row * inner + i] * d.weights[c * inner + i];
      y.push_back(sum);
    }
  return y;
}

inline std::vector<Real> reference_layer_norm(const Trial& t, const ReferenceData& d) {
  const auto columns = static_cast<std::size_t>(t.op.columns);
  std::vector<Real> y;
  for (std::size_t start = 0; start < d.inputs[0].size(); start += columns) {
    const Real* const x = d.inputs[0].data() + start;
    Real mean = 0, variance = 0;
    for (std::size_t i = 0; i < columns; ++i) mean += x[i] / static_cast<Real>(columns);
    for (std::size_t i = 0; i < columns; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<Real>(columns);
    for (std::size_t i = 0; i < columns; ++i)
      y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * d.weights[i] + d.weights[d.second + i]);
  }
  return y;
}

inline std::vector<Real> reference_elementwise(OperationKind kind, const std::vector<Real>& x) {
  std::vector<Real> y;
  for (const Real v : x) {
    if (kind == OperationKind::Relu) y.push_back(v > 0 ? v : 0);
    if (kind == OperationKind::Tanh) y.push_back(std::tanh(v));
    if (kind == OperationKind::Gelu)
      y.push_back(v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(Real{-1})) * (v + Real{0.044715} * v * v * v))));
    if (kind == OperationKind::Silu) y.push_back(v / (1 + std::exp(-v)));
  }
  return y;
}

inline std::vector<Real> reference_rms_norm(const Trial& t, const ReferenceData& d) {
  const auto columns = static_cast<std::size_t>(t.op.columns);
  std::vector<Real> y;
  for (std::size_t start = 0; start < d.inputs[0].size(); start += columns) {
    Real square = 0;
    for (std::size_t i = 0; i < columns; ++i)
      square += d.inputs[0][start + i] * d.inputs[0][start + i] / static_cast<Real>(columns);
    for (std::size_t i = 0; i < columns; ++i)
      y.push_back(d.inputs[0][start + i] / std::sqrt(square + 1e-5) * d.weights[i]);
  }
  return y;
}

inline std::vector<Real> reference_gated_silu(const Trial& t, const ReferenceData& d) {
  const auto columns = static_cast<std::size_t>(t.op.columns);
  std::vector<Real> y;
  for (std::size_t start = 0; start < d.inputs[0].size(); start += 2 * columns)
    for (std::size_t i = 0; i < columns; ++i) {
      const Real gate = d.inputs[0][start + i];
      y.push_back(gate / (1 + std::exp(-gate)) * d.inputs[0][start + columns + i]);
    }
  return y;
}

/// Pairs as complex numbers, times e^(i angle).
inline std::vector<Real> reference_rotary(const Trial& t, const ReferenceData& d) {
  std::vector<Real> y = d.inputs[0];
  const int half = t.op.rotary / 2;
  for (int row = 0; row < t.rows(); ++row)
    for (int head = 0; head < t.op.heads; ++head)
      for (int pair = 0; pair < half; ++pair) {
        const auto at =
            static_cast<std::size_t>(row * t.op.columns + (head + 1) * t.op.head_width - t.op.rotary + pair);
        const Real angle = (row % t.op.rows) * std::pow(Real{10000}, -Real{2} * pair / t.op.rotary);
        const std::complex<Real> turned =
            std::complex<Real>(y[at], y[at + static_cast<std::size_t>(half)]) * std::polar(Real{1}, angle);
        y[at] = turned.real(), y[at + static_cast<std::size_t>(half)] = turned.imag();
      }
  return y;
}

/// Head `head` of Q, or of K or V that it shares with others, number by number.
class ReferenceHead {
 public:
  ReferenceHead(const Trial& t, const ReferenceData& d, int sample, int head)
      : shape_(head_shape(t.op)), columns_(query_key_value_columns(shape_)), head_(head) {
    shared_ = head / (shape_.heads / shape_.key_value_heads);
    data_ = d.inputs[0].data() + static_cast<std::ptrdiff_t>(sample) * t.op.rows * columns_;
  }
  Real q(int row, int i) const { return data_[row * columns_ + head_ * shape_.query + i]; }
  Real k(int row, int i) const { return data_[row * columns_ + (shape_.heads + shared_) * shape_.query + i]; }
  Real v(int row, int i) const {
    const int keys = (shape_.heads + shape_.key_value_heads) * shape_.query;
    return data_[row * columns_ + keys + shared_ * shape_.value + i];
  }
  const HeadShape& shape() const { return shape_; }

 private:
  HeadShape shape_;
  int columns_, head_, shared_ = 0;
  const Real* data_;
};

inline std::vector<Real> reference_attention(const Trial& t, const ReferenceData& d) {
  std::vector<Real> y;
  for (int sample = 0; sample < t.samples; ++sample)
    for (int row = 0; row < t.op.rows; ++row)
      for (int h = 0; h < t.op.heads; ++h) {
        const ReferenceHead head(t, d, sample, h);
        const int last = t.op.causal ? row + 1 : t.op.rows;
        const int first = t.op.window > 0 ? std::max(0, last - t.op.window) : 0;
        std::vector<Real> scores;
        for (int other = first; other < last; ++other) {
          Real& score = scores.emplace_back(0);
          for (int i = 0; i < head.shape().query; ++i) score += head.q(row, i) * head.k(other, i);
          score /= std::sqrt(static_cast<Real>(head.shape().query));
        }
        const std::vector<Real> p = softmax(scores);
        for (int c = 0; c < head.shape().value; ++c) {
          Real& sum = y.emplace_back(0);
          for (int other = first; other < last; ++other)
            sum += p[static_cast<std::size_t>(other - first)] * head.v(other, c);
        }
      }
  return y;
}

inline std::vector<Real> reference_embedding(const Trial& t, const ReferenceData& d) {
  const auto columns = static_cast<std::size_t>(t.op.columns);
  std::vector<Real> y;
  for (std::size_t row = 0; row < d.inputs[0].size(); ++row)
    for (std::size_t c = 0; c < columns; ++c)
      y.push_back(d.weights[static_cast<std::size_t>(d.inputs[0][row]) * columns + c] +
                  (t.op.positions ? d.weights[d.second + row % static_cast<std::size_t>(t.op.rows) * columns + c] : 0));
  return y;
}

inline std::vector<Real> reference_prepend(const Trial& t, const ReferenceData& d) {
  const auto columns = static_cast<std::size_t>(t.op.columns), rows = static_cast<std::size_t>(t.op.rows);
  std::vector<Real> y;
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(t.samples); ++sample)
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t c = 0; c < columns; ++c) {
        const Real x = row == 0 ? d.weights[c] : d.inputs[0][(sample * (rows - 1) + row - 1) * columns + c];
        y.push_back(x + d.weights[d.second + row * columns + c]);
      }
  return y;
}

inline std::vector<Real> reference_first_row(const Trial& t, const ReferenceData& d) {
  const auto columns = static_cast<std::size_t>(t.op.columns), rows = static_cast<std::size_t>(t.op.inner);
  std::vector<Real> y;
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(t.samples); ++sample)
    for (std::size_t c = 0; c < columns; ++c) y.push_back(d.inputs[0][sample * rows * columns + c]);
  return y;
}

inline std::vector<Real> reference_joining(const Trial& t, const ReferenceData& d) {
  std::vector<Real> y;
  for (std::size_t row = 0; row < static_cast<std::size_t>(t.rows()); ++row) {
    std::vector<Real> out(t.op.kind == OperationKind::Add ? static_cast<std::size_t>(t.op.columns) : 0);
    for (std::size_t i = 0; i < d.inputs.size(); ++i)
      for (std::size_t c = 0; c < static_cast<std::size_t>(t.columns[i]); ++c) {
        const Real x = d.inputs[i][row * static_cast<std::size_t>(t.columns[i]) + c];
        if (t.op.kind == OperationKind::Add)
          out[c] += x;
        else
          out.push_back(x);
      }
    y.insert(y.end(), out.begin(), out.end());
  }
  return y;
}

inline Real reference_loss(const Trial& t, const ReferenceData& d) {
  const auto columns = static_cast<std::size_t>(t.op.columns);
  const Real rows = static_cast<Real>(t.op.rows), numbers = rows * static_cast<Real>(columns);
  Real loss = 0;
  if (t.op.kind == OperationKind::CrossEntropy)
    for (std::size_t row = 0; row < d.inputs[1].size(); ++row) {
      const auto start = d.inputs[0].begin() + static_cast<std::ptrdiff_t>(row * columns);
      const std::vector<Real> p = softmax({start, start + static_cast<std::ptrdiff_t>(columns)});
      loss -= std::log(p[static_cast<std::size_t>(d.inputs[1][row])]) / rows;
    }
  else
    for (std::size_t i = 0; i < d.inputs[0].size(); ++i) {
      const Real difference = d.inputs[0][i] - d.inputs[1][i];
      loss += difference * difference / (t.op.kind == OperationKind::MeanSquare ? numbers : 1);
    }
  return loss * static_cast<Real>(t.scale);
}

inline std::vector<Real> reference_forward(const Trial& t, const ReferenceData& d) {
  switch (t.op.kind) {
    case OperationKind::Linear:
    case OperationKind::Router:
      return reference_linear(t, d);
    case OperationKind::HeadNorm:
      return reference_head_norm(t, d);
    case OperationKind::Slice:
      return reference_slice(t, d);
    case OperationKind::Dispatch:
      return reference_dispatch(t, d);
    case OperationKind::GroupedLinear:
      return reference_grouped_linear(t, d);
    case OperationKind::Combine:
      return reference_combine(t, d);
    case OperationKind::Prepend:
      return reference_prepend(t, d);
    case OperationKind::FirstRow:
      return reference_first_row(t, d);
    case OperationKind::LayerNorm:
      return reference_layer_norm(t, d);
    case OperationKind::RmsNorm:
      return reference_rms_norm(t, d);
    case OperationKind::GatedSilu:
      return reference_gated_silu(t, d);
    case OperationKind::Rotary:
      return reference_rotary(t, d);
    case OperationKind::Attention:
      return d.inputs.size() == 3 ? reference_latent_attention(t, d) : reference_attention(t, d);
    case OperationKind::Embedding:
      return reference_embedding(t, d);
    case OperationKind::Add:
    case OperationKind::Concat:
      return reference_joining(t, d);
    case OperationKind::CrossEntropy:
    case OperationKind::MeanSquare:
    case OperationKind::SumSquare:
      return {reference_loss(t, d)};
    default:
      return reference_elementwise(t.op.kind, d.inputs[0]);
  }
}

/// Central differences of sum(d_output * output), or of a loss, by each of `numbers`, which are part of `d`. The step
/// balances h^2 f''' / 6 against the rounding 2^-64 f / h; with f and f''' below 1000 both are below 1e-10. What is at
/// most quadratic in whole numbers comes out exactly.
inline std::vector<Real> differences(const Trial& t, const TrialData& data, const ReferenceData& d,
                                     std::vector<Real>& numbers) {
  constexpr Real step = 0x1p-21L;
  const auto objective = [&] {
    const std::vector<Real> y = reference_forward(t, d);
    if (t.op.is_loss()) return y[0];
    Real sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * static_cast<Real>(data.d_output[i]);
    return sum;
  };
  std::vector<Real> slopes;
  for (Real& x : numbers) {
    const Real before = x;
    x = before + step;
    const Real above = objective();
    x = before - step;
    slopes.push_back((above - objective()) / (2 * step));
    x = before;
  }
  return slopes;
}

}  // namespace stagecraft::test
