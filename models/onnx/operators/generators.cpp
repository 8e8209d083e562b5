// Operators whose output depends on the file and on shapes alone: exporters compute with them where to slice and how to
// reshape. They are not layers.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

OperatorResult constant_result(Tensor y) {
  y.constant = true;
  return {{std::move(y)}};
}

/// Since opset 15, start and end select a part of the shape.
OperatorResult shape(const OperatorCall& c) {
  const auto rank = static_cast<std::int64_t>(c.rank(0));
  const auto clamped = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = clamped(c.integer("start", 0)), end = std::max(start, clamped(c.integer("end", rank)));
  Tensor y{Type::Int64, {end - start}};
  y.values.emplace();
  for (std::int64_t d = start; d < end; ++d) y.values->push_back(static_cast<double>(c.input(0).shape[d]));
  return constant_result(std::move(y));
}

OperatorResult size(const OperatorCall& c) {
  return constant_result({Type::Int64, {}, std::vector<double>{c.input(0).numbers()}});
}

Tensor vector_tensor(Type type, std::vector<double> values) {
  Tensor y{type, {static_cast<std::int64_t>(values.size())}};
  if (y.numbers() <= kMostValues) y.values = std::move(values);
  return y;
}

OperatorResult constant(const OperatorCall& c) {
  for (const Attribute& a : c.node.attributes) {
    if (a.name == "value" && a.tensor) return constant_result({a.tensor->type, a.tensor->shape, a.tensor->values});
    if (a.name == "value_int" && a.integer)
      return constant_result({Type::Int64, {}, std::vector<double>{static_cast<double>(*a.integer)}});
    if (a.name == "value_float" && a.real) return constant_result({Type::Float, {}, std::vector<double>{*a.real}});
    if (a.name == "value_ints")
      return constant_result(vector_tensor(Type::Int64, std::vector<double>(a.integers.begin(), a.integers.end())));
    if (a.name == "value_floats") return constant_result(vector_tensor(Type::Float, a.reals));
  }
  c.fail("it has no value that is known here");
}

OperatorResult constant_of_shape(const OperatorCall& c) {
  const Attribute* a = c.attribute("value");
  const bool given = a && a->tensor;
  Tensor y = sized(c, given ? a->tensor->type : Type::Float, c.integer_values(0));
  if (!given || (a->tensor->values && a->tensor->values->size() == 1)) {
    const double value = given ? a->tensor->values->front() : 0;
    fill(y, [&](const Shape&) { return value; });
  }
  return constant_result(std::move(y));
}

OperatorResult range(const OperatorCall& c) {
  for (const std::size_t i : {0U, 1U, 2U})
    if (c.values(i).size() != 1) c.fail(fmt::format("input {} is not one number", i));
  const double start = c.values(0)[0], step = c.values(2)[0];
  const double count = step == 0 ? 0 : std::max(0.0, std::ceil((c.values(1)[0] - start) / step));
  Tensor y = sized(c, c.input(0).type, {to_integer(count)});
  fill(y, [&](const Shape& index) { return start + step * static_cast<double>(index[0]); });
  return constant_result(std::move(y));
}

OperatorResult eye(const OperatorCall& c) {
  return constant_result(sized(c, static_cast<Type>(c.integer("dtype", 1)), c.input(0).shape));
}

const Operator generators_table[] = {{"Shape", shape},       {"Size", size},
                                     {"Constant", constant}, {"ConstantOfShape", constant_of_shape},
                                     {"Range", range},       {"EyeLike", eye}};

}  // namespace

Operators generators() { return generators_table; }

}  // namespace stagecraft::onnx
