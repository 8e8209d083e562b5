// Matrix products (MatMul, Gemm, Einsum): a multiply-add is two operations, so 2 (outputs) x (terms of each sum); each
// gradient is a product of the same size. The bias of Gemm is part of the last addition.

#include <fmt/core.h>

#include <map>

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

OperatorResult multiplied(Tensor y, double inner) {
  const double work = 2 * y.numbers() * inner;
  return {{std::move(y)}, work, {GradientWork{work, kReadsSecond}, GradientWork{work, kReadsFirst}}};
}

[[noreturn]] void refuse(const OperatorCall& c, const Shape& a, const Shape& b) {
  c.fail(fmt::format("{} times {}", to_text(a), to_text(b)),
         "do the sizes given with --set and --batch fit the model?");
}

void transpose_last(Shape& shape, bool wanted) {
  if (wanted && shape.size() > 1) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
}

OperatorResult matrices(const OperatorCall& c, Shape a, Shape b) {
  const Shape first = a, second = b;
  if (a.empty() || b.empty()) refuse(c, a, b);
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const std::int64_t rows = a[a.size() - 2], inner = a.back(), columns = b.back();
  if (inner != b[b.size() - 2]) refuse(c, first, second);
  Shape shape = broadcast(c, {a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  if (!row) shape.push_back(rows);
  if (!column) shape.push_back(columns);
  return multiplied(sized(c, c.input(0).type, std::move(shape)), static_cast<double>(inner));
}

OperatorResult mat_mul(const OperatorCall& c) { return matrices(c, c.input(0).shape, c.input(1).shape); }

OperatorResult fused_mat_mul(const OperatorCall& c) {
  Shape a = c.input(0).shape, b = c.input(1).shape;
  transpose_last(a, c.integer("transA", 0) != 0);
  transpose_last(b, c.integer("transB", 0) != 0);
  return matrices(c, a, b);
}

OperatorResult gemm(const OperatorCall& c) {
  Shape a = c.input(0).shape, b = c.input(1).shape;
  if (a.size() != 2 || b.size() != 2) refuse(c, a, b);
  transpose_last(a, c.integer("transA", 0) != 0);
  transpose_last(b, c.integer("transB", 0) != 0);
  if (a[1] != b[0]) refuse(c, a, b);
  OperatorResult result = multiplied(sized(c, c.input(0).type, {a[0], b[1]}), static_cast<double>(a[1]));
  if (c.has(2)) result.gradients.emplace_back(GradientWork{});
  return result;
}

/// Sets the sizes of the letters of one term. An ellipsis is not supported.
void read_term(const OperatorCall& c, const std::string& term, const Shape& shape,
               std::map<char, std::int64_t>& sizes) {
  if (term.size() != shape.size()) c.fail(fmt::format("'{}' for an input of {}", term, to_text(shape)));
  for (std::size_t i = 0; i < term.size(); ++i) {
    const auto [it, fresh] = sizes.emplace(term[i], shape[i]);
    if (!fresh && it->second == 1) it->second = shape[i];
    if (it->second != shape[i] && shape[i] != 1)
      c.fail(fmt::format("'{}' is {} and {}", term[i], it->second, shape[i]));
  }
}

/// One or two inputs without ellipsis: each combination of the letters is a multiply-add.
OperatorResult einsum(const OperatorCall& c) {
  std::string equation;
  for (const char letter : c.text("equation", ""))
    if (letter != ' ') equation += letter;
  const std::size_t arrow = equation.find("->"), comma = equation.find(',');
  const bool two = comma != std::string::npos;
  if (arrow == std::string::npos || equation.find('.') != std::string::npos || c.size() != (two ? 2U : 1U))
    c.fail(fmt::format("the equation '{}' is not understood", equation),
           "write one or two terms without dots and an ->");
  std::map<char, std::int64_t> sizes;
  read_term(c, equation.substr(0, std::min(comma, arrow)), c.input(0).shape, sizes);
  if (two) read_term(c, equation.substr(comma + 1, arrow - comma - 1), c.input(1).shape, sizes);
  Shape shape, iteration_space;
  for (const char letter : equation.substr(arrow + 2)) {
    if (!sizes.count(letter)) c.fail(fmt::format("'{}' of '{}' is in no input", letter, equation));
    shape.push_back(sizes.at(letter));
  }
  for (const auto& [letter, size] : sizes) iteration_space.push_back(size);
  Tensor y = sized(c, c.input(0).type, std::move(shape));
  if (!two) {
    const double n = c.input(0).numbers();
    return {{std::move(y)}, n, {GradientWork{n, 0}}};
  }
  const double inner = y.numbers() > 0 ? numbers_of(iteration_space) / y.numbers() : 0;
  return multiplied(std::move(y), inner);
}

const Operator products_table[] = {
    {"MatMul", mat_mul},
    {"Gemm", gemm},
    {"Einsum", einsum},
    {.name = "FusedMatMul", .apply = fused_mat_mul, .domain = "com.microsoft"},
};

}  // namespace

Operators products() { return products_table; }

}  // namespace stagecraft::onnx
