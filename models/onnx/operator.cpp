// Finds an ONNX operator in the tables of operators/, gives its function the inputs and attributes of a node
// (OperatorCall), and checks and broadcasts shapes.

#include "models/onnx/operator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::onnx {
namespace {

std::vector<Operators> families() {
  return {activations(), arithmetic(), products(),   windows(), norms(),     reductions(),
          recurrent(),   attention(),  selections(), views(),   generators()};
}

}  // namespace

const Tensor& OperatorCall::input(std::size_t i) const {
  if (!has(i)) fail(fmt::format("input {} is missing", i));
  return *inputs[i];
}

const std::vector<double>& OperatorCall::values(std::size_t i) const {
  if (!input(i).values)
    fail(
        fmt::format("its input {} ('{}') decides on a shape, but is only known when the model runs", i, node.inputs[i]),
        "export the model with fixed sizes, or simplify the file first");
  return *input(i).values;
}

std::vector<std::int64_t> OperatorCall::integer_values(std::size_t i) const {
  std::vector<std::int64_t> numbers;
  for (const double value : values(i)) numbers.push_back(to_integer(value));
  return numbers;
}

const Attribute* OperatorCall::attribute(std::string_view wanted) const {
  for (const Attribute& a : node.attributes)
    if (a.name == wanted) return &a;
  return nullptr;
}

std::int64_t OperatorCall::integer(std::string_view wanted, std::int64_t fallback) const {
  const Attribute* a = attribute(wanted);
  return a && a->integer ? *a->integer : fallback;
}

double OperatorCall::real(std::string_view wanted, double fallback) const {
  const Attribute* a = attribute(wanted);
  return a ? a->real.value_or(fallback) : fallback;
}

std::string OperatorCall::text(std::string_view wanted, const std::string& fallback) const {
  const Attribute* a = attribute(wanted);
  return a && !a->text.empty() ? a->text : fallback;
}

std::vector<std::int64_t> OperatorCall::integers(std::string_view wanted) const {
  const Attribute* a = attribute(wanted);
  return a ? a->integers : std::vector<std::int64_t>{};
}

std::optional<std::vector<std::int64_t>> OperatorCall::attribute_or_input(std::string_view wanted,
                                                                          std::size_t i) const {
  if (has(i)) return integer_values(i);
  if (const Attribute* a = attribute(wanted)) return a->integers;
  return {};
}

std::size_t OperatorCall::axis(std::int64_t written, std::size_t rank) const {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (written < -signed_rank || written >= signed_rank)
    fail(fmt::format("axis {} of {}", written, pluralize(signed_rank, "dimension")));
  return written < 0 ? written + signed_rank : written;
}

std::string OperatorCall::name() const {
  std::string label = node.name;
  if (label.empty() && !node.outputs.empty()) label = node.outputs.front();
  return fmt::format("{} '{}'", node.type, label);
}

void OperatorCall::fail(const std::string& message, const std::string& help) const {
  throw InputError(name() + ": " + message, help);
}

const Operator* find_operator(std::string_view domain, std::string_view name) {
  for (const Operators family : families())
    for (const Operator& op : family)
      if (op.name == name && op.domain == domain) return &op;
  return nullptr;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const Operators family : families())
    for (const Operator& op : family) names.emplace_back(op.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::int64_t to_integer(double value) {
  constexpr double kLimit = 9.2e18;
  if (std::isnan(value)) return 0;
  return static_cast<std::int64_t>(std::clamp(value, -kLimit, kLimit));
}

Tensor sized(const OperatorCall& c, Type type, Shape shape) {
  for (const std::int64_t size : shape)
    if (size < 0)
      c.fail(fmt::format("it makes a dimension of {}", size),
             "do the sizes given with --set and --batch fit the model?");
  if (const std::string why = too_large(shape); !why.empty()) c.fail("it makes " + why);
  return {type, std::move(shape)};
}

Shape broadcast(const OperatorCall& c, const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()), 1);
  for (std::size_t back = 0; back < shape.size(); ++back) {
    const std::int64_t x = back < a.size() ? a[a.size() - 1 - back] : 1;
    const std::int64_t y = back < b.size() ? b[b.size() - 1 - back] : 1;
    if (x != y && x != 1 && y != 1)
      c.fail(fmt::format("{} and {} do not fit together", to_text(a), to_text(b)),
             "do the sizes given with --set and --batch fit the model?");
    shape[shape.size() - 1 - back] = x == 1 ? y : x;
  }
  return shape;
}

}  // namespace stagecraft::onnx
