#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/file.hpp"
#include "models/onnx/operator.hpp"

// The nodes of an ONNX file, in its order, with their shapes and work; and the sizes of open dimensions.

namespace stagecraft::onnx {

/// The sizes of open dimensions, and how many samples the graph is for.
struct Dimensions {
  std::map<std::string, std::int64_t> sizes;
  std::int64_t samples = 1;
  std::vector<std::string> notes;  ///< What was assumed.

  /// The shape of a value; nothing if one of its dimensions is unknown.
  std::optional<Shape> bind(const ValueInfo&) const;
};

/// The inputs of the graph; old files list the initializers as well.
std::vector<ValueInfo> data_inputs(const File&);

/// `batch` is the size of the dimensions that count samples: those named batch or N, else the open first dimension of
/// each input. Without `batch` they are 1; if there is no such dimension, the first dimension of the first input counts
/// samples. `sizes` gives the other open dimensions by name; one without a name is called by its input, `ids.1`. Throws
/// InputError for each that is missing or unknown.
Dimensions bind_dimensions(const File&, std::optional<std::int64_t> batch,
                           const std::map<std::string, std::int64_t>& sizes);

/// One tensor of the graph: an input, an initializer, or the output of a step.
struct Value {
  std::string name;
  Tensor tensor;
  int step = -1;  ///< The step whose output it is.
  /// Whether training changes it: an initializer (or Constant) of floats with a dimension and more than one number.
  bool weights = false;
  bool learned = false;  ///< Depends on data and on weights, so a gradient flows back to it.
  int storage = -1;      ///< The value that stores its numbers: itself, unless a view shows all of another one.
  int view_source = -1;  ///< The value that its numbers come from: itself, unless it is a view.
};

/// A node with its work.
struct Step {
  const Node* node = nullptr;
  OperatorResult work;               ///< Without outputs, which are values.
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
