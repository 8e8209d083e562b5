#pragma once

#include <cstdint>
#include <vector>

#include "backends/real/kernels.hpp"
#include "sim/program/workload.hpp"

namespace stagecraft::real {

/// A tensor of a stage; amounts are for one sample.
struct Value {
  std::int64_t rows = 0, columns = 0;
  bool is_saved = false;  ///< Its own operation or a user needs it again in the backward.
  bool needs_gradient = false;
  int users = 0;  ///< Operations of the stage that read it.

  std::int64_t numbers() const { return rows * columns; }
};

/// An operation with the places of what it reads and writes.
struct Node {
  const Operation* operation = nullptr;
  std::vector<int> inputs;              ///< Indices of values.
  int output = -1;                      ///< Index of a value; -1 for a loss.
  int layer = 0, place = 0;             ///< Index of the layer in the model, and of the operation in the layer.
  int input_number = -1;                ///< For input operations: their number, counted through the model.
  std::int64_t weights = 0, count = 0;  ///< Offset and number of its weights in the stage's weights.
  bool owns_weights = false;            ///< False when tied to the weights of an earlier node.
};

/// What flows over one edge of the program: tensors, one after the other.
struct Crossing {
  int edge = 0;
  std::vector<int> values;
  std::int64_t numbers = 0;  ///< For one sample.
};

/// A stage as a list of operations, ready to be run in order.
struct StageNet {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Crossing> inputs;   ///< One for each edge that enters, in the order of the edges.
  std::vector<Crossing> outputs;  ///< One for each edge that leaves, later target stages first: gradients are added in
                                  ///< this order, which is the order of a run without stages.
  std::int64_t weights = 0;       ///< Numbers of all weights, padding included.
};

/// Bytes of a number, where all numbers of the model have the same; else InputError.
std::size_t width_of(const Workload&);

/// The result points into the workload. `width`: bytes of a number. Throws InputError when a layer is known only by its
/// amounts, or shares its weights with a layer of another stage.
StageNet compile_stage(const Workload&, StageId, std::size_t width);

/// Weights at the start, each operation's drawn for itself: the same whatever the plan. `whole`: from {-1, 0, 1}.
std::vector<double> initial_weights(const StageNet&, const Workload&, bool whole);

}  // namespace stagecraft::real
