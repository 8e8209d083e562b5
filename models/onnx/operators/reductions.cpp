// Reductions over axes, ArgMax, CumSum and TopK: one operation for each input number, two in reductions that first take
// its square, absolute value or exponential; gradients take one, and none in TopK, which keeps its indices.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

Shape reduced(const OperatorCall& c, const std::vector<std::int64_t>& axes, bool keep) {
  std::vector<bool> removed(c.rank(0), false);
  for (const std::int64_t axis : axes) removed[c.axis(axis, c.rank(0))] = true;
  Shape shape;
  for (std::size_t d = 0; d < removed.size(); ++d)
    if (!removed[d] || keep) shape.push_back(removed[d] ? 1 : c.input(0).shape[d]);
  return shape;
}

OperatorResult reduce(const OperatorCall& c) {
  std::vector<std::int64_t> axes = c.attribute_or_input("axes", 1).value_or(std::vector<std::int64_t>{});
  if (axes.empty() && c.integer("noop_with_empty_axes", 0) == 0) {
    axes.resize(c.rank(0));
    std::iota(axes.begin(), axes.end(), 0);
  }
  Tensor y = sized(c, c.input(0).type, reduced(c, axes, c.integer("keepdims", 1) != 0));
  const auto& values = c.input(0).values;
  if (c.op.value && values && !values->empty() && y.numbers() == 1) {
    double total = values->front();
    for (std::size_t i = 1; i < values->size(); ++i) total = c.op.value(total, (*values)[i]);
    y.values = {total};
  }
  const double n = c.input(0).numbers();
  return {{std::move(y)}, c.op.forward * n, {GradientWork{n, c.op.gradient->reads}}};
}

OperatorResult arg(const OperatorCall& c) {
  const Shape shape = reduced(c, {c.integer("axis", 0)}, c.integer("keepdims", 1) != 0);
  return {{sized(c, Type::Int64, shape)}, c.input(0).numbers()};
}

OperatorResult cumulative(const OperatorCall& c) {
  const double n = c.input(0).numbers();
  return {{sized(c, c.input(0).type, c.input(0).shape)}, n, {GradientWork{n, 0}}};
}

/// One comparison for each number. The indices carry the gradient back.
OperatorResult top_k(const OperatorCall& c) {
  if (c.rank(0) == 0) c.fail("its input is a single number");
  const std::int64_t k = c.has(1) ? c.integer_values(1).empty() ? 0 : c.integer_values(1).front() : c.integer("k", 1);
  Shape shape = c.input(0).shape;
  shape[c.axis(c.integer("axis", -1), shape.size())] = k;
  Tensor y = sized(c, c.input(0).type, shape);
  const Tensor places{Type::Int64, shape};
  return {{std::move(y), places}, c.input(0).numbers(), {GradientWork{0, 0}}, places.bytes()};
}

double sum(double a, double b) { return a + b; }
double product(double a, double b) { return a * b; }
double largest(double a, double b) { return std::max(a, b); }
double smallest(double a, double b) { return std::min(a, b); }

const Operator reductions_table[] = {
    {"ReduceSum", reduce, 1, GradientWork{1, 0}, sum},
    {"ReduceMean", reduce, 1, GradientWork{1, 0}},
    {"ReduceProd", reduce, 1, GradientWork{1, kReadsFirst}, product},
    {"ReduceMax", reduce, 1, GradientWork{1, kReadsFirst}, largest},
    {"ReduceMin", reduce, 1, GradientWork{1, kReadsFirst}, smallest},
    {"ReduceL1", reduce, 2, GradientWork{1, kReadsFirst}},
    {"ReduceL2", reduce, 2, GradientWork{1, kReadsFirst}},
    {"ReduceSumSquare", reduce, 2, GradientWork{1, kReadsFirst}},
    {"ReduceLogSum", reduce, 1, GradientWork{1, kReadsFirst}},
    {"ReduceLogSumExp", reduce, 2, GradientWork{1, kReadsFirst}},
    {"ArgMax", arg},
    {"ArgMin", arg},
    {"CumSum", cumulative},
    {"TopK", top_k},
};

}  // namespace

Operators reductions() { return reductions_table; }

}  // namespace stagecraft::onnx
