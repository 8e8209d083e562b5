#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "tests/backends/cuda/kernels/gpu.hpp"
#include "tests/backends/cuda/kernels/shapes.hpp"

namespace stagecraft::operations_test {
using namespace stagecraft::test;

namespace {

using enum OperationKind;

/// A named result of a trial, in rows of `columns` numbers.
struct NamedNumbers {
  std::string name;
  std::vector<double> numbers;
  std::int64_t columns = 1;
};

std::vector<NamedNumbers> all_of(real::Kernels& kernels, const Trial& t, const TrialData& data, std::size_t shift = 0) {
  ComputedTrial device(kernels, t, data, shift);
  std::vector<NamedNumbers> parts{{"output", device.output, t.op.is_loss() ? 1 : t.op.columns}};
  const auto d_inputs = device.input_gradient();
  for (std::size_t i = 0; i < d_inputs.size(); ++i)
    parts.push_back({"d_input " + std::to_string(i), d_inputs[i], t.columns[i]});
  const bool matrix = t.op.kind == Linear;
  parts.push_back({"d_weights", device.weight_gradient(0.5, 2), matrix ? t.op.inner : t.op.columns});
  parts.push_back({"saved", device.saved(), t.op.kind == Attention ? t.op.rows : t.op.columns});
  return parts;
}

/// The data of the CPU tests, changed so that sums of gradients depend on their order.
TrialData rough_data(const Trial& t, std::size_t width, bool whole) {
  TrialData data = data_for(t, width, whole);
  if (!whole)
    for (double& x : data.d_output) x = static_cast<double>(static_cast<float>(1.1 * x));
  return data;
}

/// Weights, or their gradients, where they lie when numbers have 8 bytes, with nothing between the blocks.
std::vector<double> relaid(const Trial& t, const std::vector<double>& numbers, std::size_t width) {
  const real::Blocks wide = real::blocks(t.op, 8);
  std::vector<double> to(static_cast<std::size_t>(wide.total));
  std::copy_n(numbers.begin(), wide.first, to.begin());
  std::copy_n(numbers.begin() + real::second_block(t.op, width), wide.second, to.begin() + real::second_block(t.op, 8));
  return to;
}

/// What the numbers of a trial in float make in double.
std::vector<NamedNumbers> widened_on_cpu(const Trial& t) {
  const auto kernels = cpu::make_kernels(8);
  TrialData data = rough_data(t, 4, false);
  data.width = 8;
  data.weights = relaid(t, data.weights, 4);
  return all_of(*kernels, t, data);
}

std::vector<NamedNumbers> on_gpu(const Trial& t, std::size_t width, bool whole, std::uint64_t seed = 1,
                                 std::size_t shift = 0) {
  Gpu gpu(width, seed);
  return all_of(gpu.kernels(), t, rough_data(t, width, whole), shift);
}

std::vector<NamedNumbers> on_cpu(const Trial& t, std::size_t width, bool whole = false) {
  const auto kernels = cpu::make_kernels(width);
  return all_of(*kernels, t, rough_data(t, width, whole));
}

/// Kernels that sum nothing, or in the order of the CPU's, have its bits.
bool has_bits_of_cpu(OperationKind kind) {
  return kind == Relu || kind == Tanh || kind == Gelu || kind == Silu || kind == GatedSilu || kind == Add ||
         kind == Concat || kind == Embedding;
}

bool exact_in_whole_numbers(OperationKind kind) {
  return kind == Linear || kind == Relu || kind == Add || kind == Concat || kind == SumSquare || kind == Embedding;
}

/// "" when all numbers are near; the allowed difference is `relative` of the largest number of the row, at least of 1.
std::string far_away(const std::vector<NamedNumbers>& actual, const std::vector<NamedNumbers>& expected,
                     double relative) {
  for (std::size_t part = 0; part < expected.size(); ++part) {
    const std::vector<double>&a = actual[part].numbers, &b = expected[part].numbers;
    if (a.size() != b.size()) return expected[part].name + " has another size";
    const auto columns = static_cast<std::size_t>(std::max<std::int64_t>(expected[part].columns, 1));
    for (std::size_t first = 0; first < a.size(); first += columns) {
      const std::size_t last = std::min(first + columns, a.size());
      double scale = 1;
      for (std::size_t i = first; i < last; ++i) scale = std::max(scale, std::abs(b[i]));
      for (std::size_t i = first; i < last; ++i)
        if (!(std::abs(a[i] - b[i]) <= relative * scale))
          return expected[part].name + " " + std::to_string(i) + ": " + std::to_string(a[i]) + " is not " +
                 std::to_string(b[i]) + ", off by " + std::to_string((a[i] - b[i]) / relative / scale);
    }
  }
  return "";
}

bool equal(const std::vector<NamedNumbers>& a, const std::vector<NamedNumbers>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const NamedNumbers& x, const NamedNumbers& y) { return x.numbers == y.numbers; });
}

/// What float may be off by, relative to the largest number of a row or 1, with u = 2^-24. A sum of K products is off
/// by 4 sqrt(K) u (|A||B|), and that is at most 4 K for numbers below 2. Norms: 1e-5. Softmax and cross entropy:
/// 1e-6. A turn sums two products of numbers below 2 with a sine and a cosine: both roundings of each and that of the
/// sum are at most (2 + 2 + sqrt(2)) 2 u. Attention of heads of width w over R rows: scores are off by 4 sqrt(w) u 4
/// sqrt(w), so that probabilities are by r = (32 w + 8 sqrt(R) + 16) u of themselves; gradients of scores are at most 8
/// w / sqrt(w) p, and three factors of them are off by r; R of them meet in a sum, with numbers below 2, for each head
/// that shares keys.
double float_tolerance(const Trial& t) {
  constexpr double u = 0x1p-24;
  const auto products = [](double k) { return 4 * std::sqrt(k) * u * 4 * k; };
  const double w = t.op.columns / t.op.heads, rows = t.op.rows, r = (32 * w + 8 * std::sqrt(rows) + 16) * u;
  switch (t.op.kind) {
    case Linear:  // The gradient of weights is added twice.
      return std::max(
          {products(t.op.inner + 1.0), products(t.op.columns), products(2 * static_cast<double>(t.rows()) + 1)});
    case LayerNorm:
    case RmsNorm:  // Its gradients of weights are sums over all rows.
      return std::max(1e-5, products(2 * static_cast<double>(t.rows()) + 1));
    case Attention:
      return 64 * std::sqrt(w) * rows * r * t.op.heads / head_shape(t.op).key_value_heads;
    case Rotary:
      return 11 * u;
    case CrossEntropy:
      return 1e-6;
    default:  // Squares, summed in double: a few roundings.
      return 8 * u;
  }
}

}  // namespace

TEST_CASE("every kind of operation is tried") {
  std::set<OperationKind> seen;
  for (const Trial& t : many_trials()) seen.insert(t.op.kind);
  CHECK(seen.size() == kinds_with_kernels().size());
}

TEST_CASE("in double all numbers equal the CPU's, in any order of threads") {
  for (const Trial& t : many_trials()) {
    CAPTURE(t.name);
    const auto expected = on_cpu(t, 8), first = on_gpu(t, 8, false, 1);
    CHECK(far_away(first, expected, has_bits_of_cpu(t.op.kind) ? 0 : 1e-12) == "");
    for (std::uint64_t seed = 2; seed <= kSeeds; ++seed) CHECK(equal(on_gpu(t, 8, false, seed), first));
  }
}

TEST_CASE("in float they are within the rounding of their sums") {
  for (const Trial& t : many_trials()) {
    CAPTURE(t.name);
    auto actual = on_gpu(t, 4, false);
    if (has_bits_of_cpu(t.op.kind)) {
      CHECK(equal(actual, on_cpu(t, 4)));
      continue;
    }
    auto expected = widened_on_cpu(t);
    for (std::size_t part = 0; part < actual.size(); ++part)
      if (actual[part].name == "d_weights") {
        actual[part].numbers = relaid(t, actual[part].numbers, 4);
        expected[part].numbers = relaid(t, expected[part].numbers, 8);
      }
    CHECK(far_away(actual, expected, float_tolerance(t)) == "");
  }
}

TEST_CASE("whole numbers stay whole and exact") {
  for (const Trial& t : many_trials())
    if (exact_in_whole_numbers(t.op.kind))
      for (const std::size_t width : kWidths) {
        CAPTURE(t.name);
        CHECK(equal(on_gpu(t, width, true), on_cpu(t, width, true)));
      }
}

TEST_CASE("equal calls give equal bits wherever things lie") {
  for (const Trial& t : real_trials())
    for (const std::size_t width : kWidths) {
      CAPTURE(t.name);
      const auto first = on_gpu(t, width, false);
      for (const std::size_t shift : {1U, 3U, 7U}) CHECK(equal(on_gpu(t, width, false, shift, shift), first));
    }
}

// Arrays that begin at any number, of any length: 16 bytes can be moved at once everywhere, up to a tail, or nowhere.
TEST_CASE("kernels that take each number alone, and cross entropy, have equal bits wherever their arrays begin") {
  Rng rng(12, "places");
  for (const OperationKind kind : {Relu, Tanh, Gelu, Silu, Add, CrossEntropy, MeanSquare})
    for (const int columns : {1, 7, 8, 24, 129, 1000}) {
      Trial t = drawn_trial(kind, rng);
      for (int& c : t.columns) c = c == t.op.columns ? columns : c;
      t.op.columns = columns;
      CAPTURE(t.name);
      CAPTURE(columns);
      for (const std::size_t width : {std::size_t{4}, std::size_t{8}, real::kMixedWidth}) {
        const TrialData data = data_for(t, width);
        const auto results = [&](std::size_t shift) {
          Gpu gpu(width, shift + 1);
          ComputedTrial device(gpu.kernels(), t, data, shift, true);
          std::vector<std::vector<double>> numbers = device.input_gradient();
          for (auto& added : device.input_gradient(true, 0.5)) numbers.push_back(std::move(added));
          numbers.push_back(device.output);
          return numbers;
        };
        const auto aligned = results(0);
        for (const std::size_t shift : {1U, 2U, 5U}) CHECK(results(shift) == aligned);
      }
    }
}

TEST_CASE("gradients are added to what is there, and unneeded ones are not written") {
  for (const Trial& t : real_trials()) {
    CAPTURE(t.name);
    Gpu gpu(8);
    const auto reference = cpu::make_kernels(8);
    ComputedTrial device(gpu.kernels(), t, data_for(t, 8)), expected(*reference, t, data_for(t, 8));
    std::vector<NamedNumbers> actual, wanted;
    for (const auto& d : device.input_gradient(true, 3)) actual.push_back({"d_input", d, t.op.columns});
    for (const auto& d : expected.input_gradient(true, 3)) wanted.push_back({"d_input", d, t.op.columns});
    CHECK(far_away(actual, wanted, 1e-12) == "");
    std::vector<bool> needed(t.gradients(), true);
    needed[0] = false;
    const auto some = device.input_gradient(false, 5, needed);
    CHECK(some[0] == std::vector<double>(some[0].size(), 5));
  }
}

TEST_CASE("an invalid word or class gives NaN in the output") {
  for (Trial t : real_trials()) {
    const bool words = t.op.kind == Embedding;
    if (!words && t.op.kind != CrossEntropy) continue;
    for (const double bad : {-1.0, 0.5, 1000.0, std::nan("")}) {
      TrialData data = data_for(t, 8);
      data.inputs[words ? 0 : 1][0] = bad;
      Gpu gpu(8);
      const ComputedTrial device(gpu.kernels(), t, data);
      CHECK(std::isnan(device.output[0]));
    }
  }
}

TEST_CASE("words that come back after hundreds of rows are added in the order of the rows") {
  for (const int words : {1, 3, 400}) {
    Trial t;
    t.name = "words";
    t.op.kind = Embedding;
    t.op.rows = 145, t.op.columns = 131, t.op.inner = words;
    t.samples = 3;
    t.columns = {1};
    for (const std::size_t width : kWidths)
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
        CHECK(equal(on_gpu(t, width, false, seed), on_cpu(t, width)));
  }
}

TEST_CASE("sums over many rows are made in chunks, of rows that are read by 16 bytes and of others") {
  for (const OperationKind kind : {LayerNorm, RmsNorm, Linear})
    for (const int columns : {33, 64}) {
      Trial t;
      t.name = std::to_string(columns) + " columns, many rows";
      t.op.kind = kind;
      t.op.rows = 148, t.op.columns = columns, t.op.inner = 5, t.op.bias = true;
      t.samples = 4;  // More than two chunks, the last of which is not full.
      t.columns = {kind == Linear ? 5 : columns};
      CAPTURE(t.name);
      const auto first = on_gpu(t, 8, false, 1);
      CHECK(far_away(first, on_cpu(t, 8), 1e-12) == "");
      CHECK(equal(on_gpu(t, 8, false, 2, 3), first));
    }
}

TEST_CASE("decoders have kernels, but for windows, norms of heads and routing to some nodes") {
  for (const Trial& t : real_trials()) CHECK(cuda::has_kernel(t.op));
  for (const Trial& t : window_trials()) CHECK_FALSE(cuda::has_kernel(t.op));
  for (const Trial& t : expert_trials()) {
    const bool latent = t.op.kind == Attention;
    CAPTURE(t.name);
    CHECK(cuda::has_kernel(t.op) == (!latent && t.op.kind != HeadNorm && t.op.kind != Slice));
  }
  Operation to_some_nodes{.kind = Dispatch};
  to_some_nodes.nodes = 2;
  CHECK_FALSE(cuda::has_kernel(to_some_nodes));
}

TEST_CASE("operations that have no kernel say so") {
  Gpu gpu(8);
  Operation input;
  real::Call call;
  call.operation = &input;
  CHECK_THROWS_AS(gpu.kernels().forward(call), InternalError);
}

}  // namespace stagecraft::operations_test
