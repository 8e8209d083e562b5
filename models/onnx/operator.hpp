#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/file.hpp"
#include "sim/model/tensor_operation.hpp"

namespace stagecraft::onnx {

/// A value during the analysis of the graph. Its shape is always known, its numbers only sometimes.
struct Tensor {
  Type type = Type::Float;
  Shape shape;
  std::optional<std::vector<double>> values = {};  ///< At most kMostValues numbers.
  bool constant = false;                           ///< Depends on no input of the graph.
  /// Where a view shows a part of its first input, or another order: its index i has the number at `offset` + the sum
  /// of i_d `strides`_d. Empty: all numbers in their order.
  Shape strides = {};
  std::int64_t offset = 0;

  double numbers() const { return numbers_of(shape); }
  double bytes() const { return numbers() * bytes_of(type); }
};

/// Bits for what a gradient reads from the forward pass: input i, or the output.
constexpr std::uint32_t kReadsOutput = std::uint32_t{1} << 31;
constexpr std::uint32_t reads_input(std::size_t i) { return i < 31 ? std::uint32_t{1} << i : 0; }
constexpr std::uint32_t kReadsFirst = reads_input(0), kReadsSecond = reads_input(1);

/// The work for the gradient of one input, and what it reads besides the gradient of the output.
struct GradientWork {
  double work = 0;
  std::uint32_t reads = 0;
};

/// What an operator computes from its inputs, for all samples together.
struct OperatorResult {
  std::vector<Tensor> outputs;
  double forward = 0;                                       ///< Floating-point operations.
  std::vector<std::optional<GradientWork>> gradients = {};  ///< One per input; absent: no gradient flows to it.
  double extra_stash = 0;  ///< Bytes that backward reads in addition to inputs and output.
  bool view = false;       ///< It counts as a view: no work, and nothing is kept.
};

struct Operator;

/// A node with what is known of its inputs, for the function of its operator. It throws InputError that names the node.
struct OperatorCall {
  const Operator& op;
  const Node& node;
  std::vector<const Tensor*> inputs;  ///< nullptr: not given.
  std::int64_t opset;

  std::size_t size() const { return inputs.size(); }
  bool has(std::size_t i) const { return i < inputs.size() && inputs[i]; }
  const Tensor& input(std::size_t i) const;
  std::size_t rank(std::size_t i) const { return input(i).shape.size(); }
  /// The numbers of an input; they must follow from the file.
  const std::vector<double>& values(std::size_t i) const;
  /// The numbers of an input as integers.
  std::vector<std::int64_t> integer_values(std::size_t i) const;

  const Attribute* attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  double real(std::string_view name, double fallback) const;
  std::string text(std::string_view name, const std::string& fallback) const;
  std::vector<std::int64_t> integers(std::string_view name) const;  ///< Empty if not given.
  /// Integers that old operator sets have in an attribute and newer ones in input i; nothing if in neither.
  std::optional<std::vector<std::int64_t>> attribute_or_input(std::string_view name, std::size_t i) const;

  /// An axis from -rank to rank - 1, counted from 0.
  std::size_t axis(std::int64_t written, std::size_t rank) const;
  std::string name() const;  ///< "Conv 'conv1'"
  [[noreturn]] void fail(const std::string& message, const std::string& help = {}) const;
};

constexpr std::string_view kMicrosoft = "com.microsoft";  ///< The domain of operators that ONNX Runtime adds.

/// An operator: its shapes, its work and what backward keeps.
struct Operator {
  std::string_view name;
  OperatorResult (*apply)(const OperatorCall&);
  /// Families with one shape rule use these: operations per number of the forward, and of each gradient with its reads.
  double forward = 0;
  std::optional<GradientWork> gradient = {};
  double (*value)(double, double) = nullptr;  ///< Computes numbers that shapes may depend on.
  std::string_view domain = {};
};

using Operators = std::span<const Operator>;

Operators activations();
Operators arithmetic();
Operators products();
Operators windows();
Operators norms();
Operators reductions();
Operators recurrent();
Operators attention();
Operators views();
Operators generators();
Operators selections();

/// Finds an operator by domain (empty or com.microsoft) and name; nullptr if there is none.
const Operator* find_operator(std::string_view domain, std::string_view name);
std::vector<std::string> operator_names();

/// Rounds toward zero and clamps to 64 bits; NaN gives 0.
std::int64_t to_integer(double);
/// A tensor of this shape; InputError that names the node if a size is negative or the tensor too large.
Tensor sized(const OperatorCall&, Type, Shape);
Shape broadcast(const OperatorCall&, const Shape&, const Shape&);
/// The window of a Conv, MaxPool or AveragePool.
TensorWindow window_of(const OperatorCall&);

/// Fills the values of a small tensor: `value` gets the index along each dimension. A large tensor has no values.
template <class Value>
void fill(Tensor& y, Value value) {
  if (y.numbers() > kMostValues) return;
  y.values.emplace(static_cast<std::size_t>(y.numbers()));
  Shape index(y.shape.size(), 0);
  for (double& number : *y.values) {
    number = value(index);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < y.shape[d]) break;
      index[d] = 0;
    }
  }
}

/// The number at an index of a tensor whose values are known.
inline double value_at(const Tensor& t, const Shape& index) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset = offset * t.shape[d] + index[d];
  return t.values->at(offset);
}

}  // namespace stagecraft::onnx
