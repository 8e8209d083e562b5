// Mixed precision on the GPU against the CPU's rounding: the same bits where nothing is summed or the order is the
// CPU's, and within a derived bound elsewhere.
#include <cmath>

#include <doctest/doctest.h>

#include "backends/real/formulas/bfloat16.hpp"
#include "tests/backends/cuda/kernels/gpu.hpp"
#include "tests/backends/cuda/kernels/shapes.hpp"

namespace stagecraft::mixed_kernels_test {
using namespace stagecraft::test;

namespace {

using enum OperationKind;

struct Results {
  std::vector<double> output, saved, d_weights;
  std::vector<std::vector<double>> d_inputs;
  bool operator==(const Results&) const = default;
};

TrialData rounded_data(const Trial& t, bool whole) {
  TrialData data = data_for(t, real::kMixedWidth, whole);
  for (std::vector<double>* numbers : {&data.weights, &data.d_output})
    for (double& x : *numbers) x = static_cast<float>(real::Bfloat16(static_cast<float>(x)));
  return data;
}

Results all_of(real::Kernels& kernels, const Trial& t, bool whole, std::size_t shift = 0) {
  ComputedTrial device(kernels, t, rounded_data(t, whole), shift);
  return {device.output, device.saved(), device.weight_gradient(0.5, 2), device.input_gradient()};
}

Results on_cpu(const Trial& t, bool whole) {
  const auto kernels = cpu::make_kernels(real::kMixedWidth);
  return all_of(*kernels, t, whole);
}

Results on_gpu(const Trial& t, bool whole, std::uint64_t seed = 1, std::size_t shift = 0) {
  Gpu gpu(real::kMixedWidth, seed);
  return all_of(gpu.kernels(), t, whole, shift);
}

bool has_bits_of_cpu(OperationKind kind) {
  return kind == Relu || kind == Tanh || kind == Gelu || kind == Silu || kind == GatedSilu || kind == Add ||
         kind == Concat || kind == Embedding;
}

bool exact_in_whole_numbers(OperationKind kind) { return has_bits_of_cpu(kind) || kind == Linear || kind == SumSquare; }

// Both sides round to 16 bits what they computed in floats. If floats are off by e, that is at most e + 2 u |x| with
// u = 2^-8, because each rounding is off by u |x|. e is that of the test of floats for one operation: sums of K
// products of numbers below 2 are off by 4 sqrt(K) 2^-24 4 K. Attention has roundings between its products: two
// probabilities that floats make equal to e may round to neighbors, 2 u apart, and so may gradients of scores, which
// are at most 16 sqrt(w) p, as derived in tests/backends/cpu/mixed_test.cpp; sums over R rows then differ by as much as
// there, for each head that shares keys.
double float_error(const Trial& t) {
  const auto products = [](double k) { return 4 * std::sqrt(k) * 0x1p-24 * 4 * k; };
  const double rows = 2 * static_cast<double>(t.rows()) + 1;
  if (t.op.kind == Linear) return std::max({products(t.op.inner + 1.0), products(t.op.columns), products(rows)});
  return std::max(1e-5, products(rows));
}

int sharing(const Trial& t) { return t.op.heads / head_shape(t.op).key_value_heads; }

double bound(const Trial& t, double x, bool is_wide, bool is_gradient) {
  if (t.op.kind == Attention)
    return 4 * 0x1p-8 * (is_gradient ? 16 * std::sqrt(t.op.columns / t.op.heads) * t.op.rows * sharing(t) + 1 : 1) +
           1e-5;
  const double e = float_error(t) * std::max(1.0, std::abs(x));
  return e + (is_wide ? 0 : 2 * 0x1p-8 * std::abs(x));
}

/// "" where all numbers are within their bounds.
std::string far_away(const Trial& t, const std::vector<double>& a, const std::vector<double>& b, bool is_wide,
                     bool is_gradient) {
  if (a.size() != b.size()) return "another size";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= bound(t, b[i], is_wide, is_gradient)))
      return std::to_string(i) + ": " + std::to_string(a[i]) + " is not " + std::to_string(b[i]);
  return "";
}

}  // namespace

TEST_CASE("in mixed precision elementwise operations have the bits of the CPU, in any order of threads") {
  for (const Trial& t : many_trials()) {
    CAPTURE(t.name);
    const Results first = on_gpu(t, false, 1);
    if (has_bits_of_cpu(t.op.kind)) CHECK(first == on_cpu(t, false));
    CHECK(on_gpu(t, false, 2) == first);
    CHECK(on_gpu(t, false, 3, 3) == first);
  }
}

TEST_CASE("in mixed precision whole numbers are rounded to the bits of the CPU, sums included") {
  for (const Trial& t : many_trials())
    if (exact_in_whole_numbers(t.op.kind)) {
      CAPTURE(t.name);
      CHECK(on_gpu(t, true) == on_cpu(t, true));
    }
}

TEST_CASE("in mixed precision all operations are within the bound of their roundings") {
  int differ = 0;
  for (const Trial& t : many_trials()) {
    CAPTURE(t.name);
    const Results gpu = on_gpu(t, false), cpu = on_cpu(t, false);
    differ += gpu != cpu;
    CHECK(far_away(t, gpu.output, cpu.output, t.op.is_loss(), false) == "");
    if (t.op.kind == Attention) {  // cuDNN keeps other numbers.
      if (gpu.saved.size() == cpu.saved.size())
        for (std::size_t i = 0; i < cpu.saved.size(); ++i)
          CHECK(std::abs(gpu.saved[i] - cpu.saved[i]) <= 1e-6 + 2 * 0x1p-8 * cpu.saved[i]);
    } else {
      CHECK(far_away(t, gpu.saved, cpu.saved, true, false) == "");
    }
    CHECK(far_away(t, gpu.d_weights, cpu.d_weights, true, true) == "");
    for (std::size_t i = 0; i < cpu.d_inputs.size(); ++i)
      CHECK(far_away(t, gpu.d_inputs[i], cpu.d_inputs[i], false, true) == "");
  }
  CHECK(differ > 0);  // Else all orders were the CPU's, and the bounds were not needed.
}

}  // namespace stagecraft::mixed_kernels_test
