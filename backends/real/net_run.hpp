#pragma once

#include <vector>

#include "backends/real/array.hpp"
#include "backends/real/stage_net.hpp"
#include "sim/training/task.hpp"

namespace stagecraft::real {

/// Which samples a run is about: `count` from `first`, counted through the iterations of `mini_batch` samples each.
/// Iteration -1 is the evaluation set.
struct Samples {
  std::int64_t first = 0, count = 1, mini_batch = 1;
  bool evaluation = false;
};

/// What lives from the forward of a micro-batch to its backward.
struct Activations {
  std::vector<Array> values;     ///< By value; those from other stages are put there before the forward.
  std::vector<Array> saved;      ///< By node.
  std::vector<Array> gradients;  ///< By value.
  double loss = 0;
};

/// Seconds that each node of a net took, all calls so far together.
struct NodeTimes {
  std::vector<double> forward, input_gradient, weight_gradient;
};

/// The operations of a stage on some samples, in one device's memory.
class NetRun {
 public:
  /// `times`, where it is not null, is added to; it has to stay where it is.
  NetRun(const StageNet& net, DeviceMemory& memory, const Dataset& data, NodeTimes* times = nullptr)
      : net_(&net), memory_(&memory), data_(&data), times_(times) {}

  /// Runs all operations. Values that nobody reads any more are dropped, unless `keep` and the backward needs them, or
  /// they leave the stage.
  void forward(const Samples&, const void* weights, bool keep, Activations&) const;
  /// The halves of a backward; `gradients` holds what came from later stages. Weight gradients are added to `sum`.
  void backward(const Samples&, const void* weights, bool input_side, void* sum, Activations&) const;
  /// A value that is not finite, as a sentence; empty: there is none.
  std::string not_finite(const Activations&, const ModelGraph&) const;

 private:
  void run_node(const Node&, std::size_t n, const Samples&, const void* weights, Activations&) const;
  void load(const Node&, const Samples&, Array& into) const;
  Array targets(const Node&, const Samples&) const;
  Call call(std::size_t n, const Samples&, const void* weights, const Activations&) const;
  void input_side_of(std::size_t n, const Call&, Activations&) const;
  double scale(const Operation&, const Samples&) const;

  const StageNet* net_;
  DeviceMemory* memory_;
  const Dataset* data_;
  NodeTimes* times_;
  mutable std::vector<Tensor> inputs_;  ///< Of the call being made.
};

}  // namespace stagecraft::real
