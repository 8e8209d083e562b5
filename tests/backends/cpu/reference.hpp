#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "tests/backends/cpu/trial.hpp"

/// Every operation again, as its definition in sim/model/operation.hpp says, one number after the other.
namespace stagecraft::test {

using Real = long double;

/// What an operation reads: rows and columns of each input, and its weights.
struct ReferenceData {
  std::vector<std::vector<Real>> inputs;
  std::vector<Real> weights;
  std::size_t second = 0;  ///< Where the second block of the weights starts.
};

inline std::vector<Real> widened(const std::vector<double>& numbers) { return {numbers.begin(), numbers.end()}; }

inline ReferenceData reference_data_of(const Trial& t, const TrialData& data) {
  ReferenceData d;
  for (const auto& input : data.inputs) d.inputs.push_back(widened(input));
  d.weights = widened(data.weights);
  const std::size_t step = 64 / data.width;
  d.second = (static_cast<std::size_t>(real::blocks(t.op, data.width).first) + step - 1) / step * step;
  return d;
}

/// The exponentials of numbers over their sum.
inline std::vector<Real> softmax(const std::vector<Real>& x) {
  std::vector<Real> p;
  Real sum = 0;
  for (const Real number : x) sum += p.emplace_back(std::exp(number));
  for (Real& number : p) number /= sum;
  return p;
}

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
  }
  return y;
}

inline std::vector<Real> reference_attention(const Trial& t, const ReferenceData& d) {
  const auto rows = static_cast<std::size_t>(t.op.rows), columns = static_cast<std::size_t>(t.op.columns);
  const std::size_t width = columns / static_cast<std::size_t>(t.op.heads);
  std::vector<Real> y;
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(t.samples); ++sample)
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t head = c / width * width;
        const auto at = [&](std::size_t r, std::size_t part, std::size_t column) {
          return d.inputs[0][(sample * rows + r) * 3 * columns + part * columns + column];
        };
        std::vector<Real> scores;
        for (std::size_t other = 0; other < (t.op.causal ? row + 1 : rows); ++other) {
          Real& score = scores.emplace_back(0);
          for (std::size_t i = head; i < head + width; ++i) score += at(row, 0, i) * at(other, 1, i);
          score /= std::sqrt(static_cast<Real>(width));
        }
        const std::vector<Real> p = softmax(scores);
        Real& sum = y.emplace_back(0);
        for (std::size_t other = 0; other < p.size(); ++other) sum += p[other] * at(other, 2, c);
      }
  return y;
}

inline std::vector<Real> reference_embedding(const Trial& t, const ReferenceData& d) {
  const auto columns = static_cast<std::size_t>(t.op.columns);
  std::vector<Real> y;
  for (std::size_t row = 0; row < d.inputs[0].size(); ++row)
    for (std::size_t c = 0; c < columns; ++c)
      y.push_back(d.weights[static_cast<std::size_t>(d.inputs[0][row]) * columns + c] +
                  d.weights[d.second + row % static_cast<std::size_t>(t.op.rows) * columns + c]);
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
      return reference_linear(t, d);
    case OperationKind::LayerNorm:
      return reference_layer_norm(t, d);
    case OperationKind::Attention:
      return reference_attention(t, d);
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
