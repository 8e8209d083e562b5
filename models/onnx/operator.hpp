#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/file.hpp"

namespace stagecraft::onnx {

/// What is known of one value while the graph is walked. Its shape always is.
struct Tensor {
  Type type = Type::Float;
  Shape shape;
  std::optional<std::vector<double>> values = {};  ///< At most kMostValues numbers.
  bool constant = false;                           ///< Depends on no input of the graph.

  double numbers() const { return numbers_of(shape); }
  double bytes() const { return numbers() * bytes_of(type); }
};

/// Bits of what a gradient reads that the forward had: input i, or what came out.
constexpr std::uint32_t kReadsOutput = std::uint32_t{1} << 31;
constexpr std::uint32_t reads_input(std::size_t i) { return i < 31 ? std::uint32_t{1} << i : 0; }

/// The work for the gradient of one input, and what it reads besides the gradient of the output.
struct Gradient {
  double work = 0;
  std::uint32_t reads = 0;
};

/// What an operator makes of its inputs, for all samples at once.
struct Outcome {
  std::vector<Tensor> outputs;
  double forward = 0;                                   ///< Floating-point operations.
  std::vector<std::optional<Gradient>> gradients = {};  ///< By input; absent: it is never learnt and passes none on.
  double kept = 0;                                      ///< Bytes that backward reads besides inputs and output.
  bool view = false;                                    ///< The numbers of input 0, or some of them, and no others.
};

struct Operator;

/// One node with what is known of its inputs; what an operator's function reads. Throws InputError that names the node.
struct Call {
  const Operator& op;
  const Node& node;
  std::vector<const Tensor*> inputs;  ///< nullptr: left out.
  std::int64_t opset;

  std::size_t size() const { return inputs.size(); }
  bool has(std::size_t i) const { return i < inputs.size() && inputs[i]; }
  const Tensor& in(std::size_t i) const;
  std::size_t rank(std::size_t i) const { return in(i).shape.size(); }
  /// The numbers of an input, which have to follow from the file.
  const std::vector<double>& values(std::size_t i) const;
  /// The same as whole numbers.
  std::vector<std::int64_t> whole(std::size_t i) const;

  const Attribute* attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  std::string text(std::string_view name, const std::string& fallback) const;
  std::vector<std::int64_t> integers(std::string_view name) const;  ///< Empty when not given.
  /// Whole numbers from an attribute in old operator sets, from input i in newer ones; nothing when in neither.
  std::optional<std::vector<std::int64_t>> list(std::string_view name, std::size_t i) const;

  /// An axis from -rank to rank - 1, counted from 0.
  std::size_t axis(std::int64_t written, std::size_t rank) const;
  std::string name() const;  ///< "Conv 'conv1'"
  [[noreturn]] void fail(const std::string& message, const std::string& help = {}) const;
};

/// One operator: its shapes, its work and what backward keeps.
struct Operator {
  std::string_view name;
  Outcome (*apply)(const Call&);
  /// For families whose members differ in little: operations of one number forward and for each gradient, and what
  /// that gradient reads.
  double forward = 0;
  std::optional<Gradient> gradient = {};
  double (*value)(double, double) = nullptr;  ///< Of numbers that shapes may depend on.
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
Operators makers();
Operators selections();

/// By domain (empty, or com.microsoft) and name; nullptr when there is none.
const Operator* find_operator(std::string_view domain, std::string_view name);
std::vector<std::string> operator_names();

/// A whole number from a double that may be as large as 64 bits go; NaN is 0.
std::int64_t to_whole(double);
/// A size that is not negative, of a tensor that is not too large; InputError that names the node.
Tensor sized(const Call&, Type, Shape);
Shape broadcast(const Call&, const Shape&, const Shape&);

}  // namespace stagecraft::onnx
