#include <algorithm>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "tests/backends/cpu/reference.hpp"

namespace stagecraft::operations_test {
using namespace stagecraft::test;

namespace {

/// A sum of n products of numbers below 2 is wrong by less than n u 4 n in any order, with u half of epsilon. No sum
/// here is longer than `terms`, and nothing needs more than 40 roundings otherwise.
double tolerance(const Trial& t, std::size_t width) {
  const double terms = std::max<double>(40, std::max(t.op.inner, t.op.columns));
  return 2 * terms * terms * (width == 4 ? 0x1p-23 : 0x1p-52);
}

/// The index of the first number that is too far away, with both; "" when all are near.
std::string far_away(const std::vector<double>& actual, const std::vector<Real>& expected, double tolerance) {
  if (actual.size() != expected.size()) return "sizes differ";
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto want = static_cast<double>(expected[i]);
    if (!(std::abs(actual[i] - want) <= tolerance * std::max(1.0, std::abs(want))))
      return std::to_string(i) + ": " + std::to_string(actual[i]) + " is not " + std::to_string(want) + ", off by " +
             std::to_string((actual[i] - want) / tolerance) + " tolerances";
  }
  return "";
}

struct Expected {
  std::vector<Real> output;
  std::vector<std::vector<Real>> d_inputs;
  std::vector<Real> d_weights;
};

Expected expected_of(const Trial& t, const TrialData& data) {
  ReferenceData d = reference_data_of(t, data);
  Expected e;
  e.output = reference_forward(t, d);
  for (std::size_t i = 0; i < t.gradients(); ++i)
    e.d_inputs.push_back(t.op.kind == OperationKind::Embedding ? std::vector<Real>(d.inputs[i].size())
                                                               : differences(t, data, d, d.inputs[i]));
  e.d_weights = differences(t, data, d, d.weights);
  return e;
}

/// With numbers of each width, of which `allowed` says how far they and their gradients may be away.
template <typename Allowed>
void check(const Trial& t, bool whole, const Allowed& allowed) {
  CAPTURE(t.name);
  Expected expected;
  for (const std::size_t width : kWidths) {
    CAPTURE(width);
    const auto kernels = cpu::make_kernels(width);
    const TrialData data = data_for(t, width, whole);
    const TrialResult actual = compute(*kernels, t, data);
    // Only weights lie differently for each width, so without them the data are the same.
    if (width == kWidths[0] || !data.weights.empty()) expected = expected_of(t, data);
    const auto [output, slope] = allowed(width);
    CHECK(far_away(actual.output, expected.output, output) == "");
    for (std::size_t i = 0; i < t.gradients(); ++i)
      CHECK(far_away(actual.d_inputs[i], expected.d_inputs[i], slope) == "");
    CHECK(far_away(actual.d_weights, expected.d_weights, slope) == "");
  }
}

bool exact_in_whole_numbers(OperationKind kind) {
  using enum OperationKind;
  return kind == Linear || kind == Relu || kind == Add || kind == Concat || kind == SumSquare || kind == Embedding ||
         kind == Slice || kind == Router || kind == Dispatch || kind == GroupedLinear || kind == Prepend ||
         kind == FirstRow;
}

}  // namespace

TEST_CASE("every operation and its gradients are what the definition says") {
  for (const Trial& t : cpu_trials())
    check(t, false, [&](std::size_t width) {
      const double allowed = tolerance(t, width);
      return std::pair(allowed, std::max(allowed, 1e-9));
    });
}

TEST_CASE("whole numbers stay whole and exact") {
  for (const Trial& t : cpu_trials())
    if (exact_in_whole_numbers(t.op.kind)) check(t, true, [](std::size_t) { return std::pair(0.0, 0.0); });
}

TEST_CASE("gradients are added to what is there") {
  for (const Trial& t : cpu_trials())
    for (const std::size_t width : kWidths) {
      CAPTURE(t.name);
      const auto kernels = cpu::make_kernels(width);
      ComputedTrial device(*kernels, t, data_for(t, width));
      const auto once = device.input_gradient(), added = device.input_gradient(true, 3);
      for (std::size_t i = 0; i < once.size(); ++i) {
        std::vector<Real> sums;
        for (const double x : once[i]) sums.push_back(Real{3} + x);
        CHECK(far_away(added[i], sums, tolerance(t, width)) == "");
      }
      std::vector<Real> sums;
      for (const double x : device.weight_gradient()) sums.push_back(Real{3} + Real{2} * x);
      CHECK(far_away(device.weight_gradient(3, 2), sums, tolerance(t, width)) == "");
    }
}

TEST_CASE("gradients that are not needed are not written") {
  for (const Trial& t : cpu_trials()) {
    CAPTURE(t.name);
    const auto kernels = cpu::make_kernels(8);
    ComputedTrial device(*kernels, t, data_for(t, 8));
    const auto gradients = device.input_gradient();
    for (std::size_t left_out = 0; left_out < gradients.size(); ++left_out) {
      std::vector<bool> wanted(gradients.size(), true);
      wanted[left_out] = false;
      auto some = device.input_gradient(false, 5, wanted);
      CHECK(some[left_out] == std::vector<double>(gradients[left_out].size(), 5));
      some[left_out] = gradients[left_out];
      CHECK(some == gradients);
    }
  }
}

TEST_CASE("decoders have kernels, but for sinks, windows without a mask and routing to some nodes") {
  using enum OperationKind;
  for (const Trial& t : cpu_trials()) CHECK(cpu::has_kernel(t.op));
  Operation sinks{.kind = Attention}, window{.kind = Attention}, to_some_nodes{.kind = Dispatch};
  sinks.sinks = true, window.window = 3, to_some_nodes.nodes = 2;
  CHECK_FALSE(cpu::has_kernel(sinks));
  CHECK_FALSE(cpu::has_kernel(window));
  CHECK_FALSE(cpu::has_kernel(to_some_nodes));
  for (const Trial& t : real_trials()) CHECK(real::has_kernel(t.op));
  for (const Trial& t : window_trials()) CHECK_FALSE(real::has_kernel(t.op));
  for (const Trial& t : expert_trials()) CHECK_FALSE(real::has_kernel(t.op));
  for (const Trial& t : image_trials()) CHECK_FALSE(real::has_kernel(t.op));
}

TEST_CASE("experts are chosen by falling scores, and the first of equal ones") {
  const auto kernels = cpu::make_kernels(8);
  const Operation op{.kind = OperationKind::Router, .experts = 4, .active = 3};
  const DeviceTensor scores(*kernels, {1, 3, 3, 2, 0, 0, 0, 0, -5, -2, -7, -1}, 4);
  std::vector<std::int32_t> chosen(9);
  kernels->choose_experts(op, scores.tensor, chosen);
  CHECK(chosen == std::vector<std::int32_t>{1, 2, 3, 0, 1, 2, 3, 1, 0});
}

TEST_CASE("operations that have no kernel say so") {
  const auto kernels = cpu::make_kernels(8);
  Operation input;
  real::Call call;
  call.operation = &input;
  CHECK_THROWS_AS(kernels->forward(call), InternalError);
}

}  // namespace stagecraft::operations_test
