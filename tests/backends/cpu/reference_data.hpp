#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "tests/backends/cpu/trial.hpp"

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

}  // namespace stagecraft::test
