#pragma once

#include <string>
#include <vector>

#include "models/onnx/dimensions.hpp"
#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {

/// One tensor of the graph: an input, an initializer, or what a step made.
struct Value {
  std::string name;
  Tensor tensor;
  int step = -1;  ///< That made it.
  /// Numbers that training changes: an initializer (or Constant) of floats, more than one, with a dimension.
  bool weights = false;
  bool learnt = false;  ///< Depends on data and on weights, so that a gradient comes back to it.
  int same = -1;        ///< The value that holds the same numbers, or all of them; itself if none does.
  int part_of = -1;     ///< The value that its numbers are taken from; itself where they are made.
};

/// One node with what it does.
struct Step {
  const Node* node = nullptr;
  Outcome work;                      ///< Its outputs have become values.
  std::vector<int> inputs, outputs;  ///< Values; -1 where left out.
  bool constant = false;             ///< Nothing of it depends on data.
};

/// The graph with all shapes and all work, in the order of the file, which is topological.
struct Walk {
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<int> inputs, outputs;
  std::vector<std::string> warnings;

  /// Whether the gradient of an input of a step is wanted, as data or as weights.
  bool wants_gradient(const Step&, std::size_t input) const;
};

/// Throws InputError for what does not fit together and, unless `unknown_is_zero`, for unknown operators; those take
/// their shapes from the file and count nothing.
Walk walk(const File&, const Dimensions&, bool unknown_is_zero);

}  // namespace stagecraft::onnx
