// Mixed precision on the CPU: what is rounded, and that nothing else is.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "backends/real/formulas/bfloat16.hpp"
#include "tests/backends/cpu/trial.hpp"

namespace stagecraft::mixed_test {

using namespace stagecraft::test;

namespace {

double rounded(double x) { return static_cast<float>(real::Bfloat16(static_cast<float>(x))); }

/// Numbers that 16 bits hold.
TrialData rounded_data(const Trial& t, std::size_t width) {
  TrialData data = data_for(t, width);
  const bool words = t.op.kind == OperationKind::Embedding;
  for (std::size_t i = 0; i < data.inputs.size(); ++i)
    if (!words && !(t.op.is_loss() && i == 1))
      for (double& x : data.inputs[i]) x = rounded(x);
  for (double& x : data.weights) x = rounded(x);
  for (double& x : data.d_output) x = rounded(x);
  return data;
}

bool is_tried(const Trial& t) { return cpu::has_mixed_kernel(t.op) && t.columns.size() > 0; }

}  // namespace

TEST_CASE("rounding to 16 bits is to the nearest number, ties to even") {
  CHECK(rounded(1) == 1);
  CHECK(rounded(1 + 0x1p-8) == 1);               // Halfway to 1 + 2^-7: 1 is even.
  CHECK(rounded(1 + 3 * 0x1p-8) == 1 + 0x1p-6);  // Halfway: up to the even one.
  CHECK(rounded(1 + 0x1.2p-8) == 1 + 0x1p-7);
  CHECK(rounded(-1 - 0x1.2p-8) == -1 - 0x1p-7);
  CHECK(rounded(0x1.ffp127) == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(rounded(std::nan(""))));
  for (int bits = 0; bits < 0x7f80; ++bits) {
    real::Bfloat16 x;
    x.bits = static_cast<std::uint16_t>(bits);
    CHECK(real::Bfloat16(static_cast<float>(x)).bits == bits);
  }
}

TEST_CASE("an operation computes in floats and rounds its results once") {
  const auto mixed = cpu::make_kernels(real::kMixedWidth), floats = cpu::make_kernels(sizeof(float));
  int tried = 0;
  for (const Trial& t : cpu_trials()) {
    if (!is_tried(t) || t.op.kind == OperationKind::Attention) continue;
    CAPTURE(t.name);
    ++tried;
    const TrialData data = rounded_data(t, 4);
    TrialResult expected = compute(*floats, t, data);
    const TrialResult actual = compute(*mixed, t, data);
    if (!t.op.is_loss())  // A loss is a number of 32 bits.
      for (double& x : expected.output) x = rounded(x);
    // What a forward kept in 16 bits is what its backward reads: tanh and ReLU keep their output.
    const bool keeps_output = real::keeps(t.op).output;
    for (std::vector<double>& d : expected.d_inputs)
      for (double& x : d) x = rounded(x);
    CHECK(actual.output == expected.output);
    if (!keeps_output || t.op.kind == OperationKind::Relu) CHECK(actual.d_inputs == expected.d_inputs);
    CHECK(actual.d_weights == expected.d_weights);
  }
  CHECK(tried > 20);
}

// Probabilities, and gradients of scores, are factors of the next product, and so have one rounding more, of 2^-8 of
// themselves. Inputs are below 2. Probabilities of a row sum to 1, so an output is off by 2 * 2^-8 and its own rounding
// by 2 * 2^-8. Through a softmax, |d p| <= w * 4 for heads of width w and 2 of these in d - sum(d p), so a gradient of
// a score is below 8 w / sqrt(w) * p; rounding P changes it by 2^-8 twice, rounding itself once more. Rows sum R of
// them times numbers below 2, and the result is rounded: together 4 * 2^-8 * (16 sqrt(w) R + 1), and as much for
// floats.
TEST_CASE("attention is within the roundings of its probabilities") {
  const auto mixed = cpu::make_kernels(real::kMixedWidth), floats = cpu::make_kernels(sizeof(float));
  int tried = 0;
  bool differs = false;
  for (const Trial& t : cpu_trials()) {
    if (!is_tried(t) || t.op.kind != OperationKind::Attention) continue;
    CAPTURE(t.name);
    ++tried;
    const TrialData data = rounded_data(t, 4);
    const TrialResult expected = compute(*floats, t, data), actual = compute(*mixed, t, data);
    for (std::size_t i = 0; i < expected.output.size(); ++i) {
      CHECK(std::abs(actual.output[i] - expected.output[i]) <= 4 * 0x1p-8 + 1e-5);
      differs = differs || actual.output[i] != rounded(expected.output[i]);
    }
    const double width = head_shape(t.op).query;
    const double bound = 4 * 0x1p-8 * (16 * std::sqrt(width) * t.op.rows + 1);
    for (std::size_t i = 0; i < expected.d_inputs[0].size(); ++i)
      CHECK(std::abs(actual.d_inputs[0][i] - expected.d_inputs[0][i]) <= bound);
  }
  CHECK(tried > 2);
  CHECK(differs);  // Else probabilities were not rounded.
}

}  // namespace stagecraft::mixed_test
