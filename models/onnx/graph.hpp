#pragma once

#include <string>
#include <vector>

#include "models/onnx/dimensions.hpp"
#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {

/// One tensor of the graph: an input, an initializer, or the output of a step.
struct Value {
  std::string name;
  Tensor tensor;
  int step = -1;  ///< The step whose output it is.
  /// Whether training changes it: an initializer (or Constant) of floats with a dimension and more than one number.
  bool weights = false;
  bool learnt = false;  ///< Depends on data and on weights, so a gradient flows back to it.
  int same = -1;        ///< The value that stores its numbers: itself, unless a view shows all of another one.
  int part_of = -1;     ///< The value that its numbers come from: itself, unless it is a view.
};

/// A node with its work.
struct Step {
  const Node* node = nullptr;
  Outcome work;                      ///< Without outputs, which are values.
  std::vector<int> inputs, outputs;  ///< Values; -1: not given.
  bool constant = false;             ///< It does not depend on data.
};

/// The graph with all shapes and all work, in the file's order, which is topological.
struct Graph {
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<int> inputs, outputs;
  std::vector<std::string> warnings;

  /// Whether the gradient of an input of a step is wanted, as data or as weights.
  bool wants_gradient(const Step&, std::size_t input) const;
};

/// Computes the shapes and the work of all nodes. Throws InputError for shapes that do not match and, unless
/// `unknown_is_zero`, for unknown operators; with it, these take their shapes from the file and count no work.
Graph analyze_graph(const File&, const Dimensions&, bool unknown_is_zero);

}  // namespace stagecraft::onnx
