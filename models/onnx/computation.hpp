#pragma once

#include <map>
#include <set>
#include <vector>

#include "models/onnx/import.hpp"
#include "models/operations.hpp"

namespace stagecraft::onnx {

/// What the layers of a graph compute, as tensor operations that real backends can run. The graph is for one sample.
/// Views and nodes that depend on the file alone are computed where they are read; a view that keeps all numbers in
/// their order is no operation. What no TensorFunction stands for is an operation of the function Unknown.
class Computation {
 public:
  /// `tied`: the nodes that read an initializer share it; else each has a copy.
  Computation(const Graph&, std::int64_t opset, const ImportedLayers&, bool tied);

  /// The operations of a layer; the last one computes all numbers of the value that it sends.
  Operations of_layer(LayerId) const;
  /// The operations of a loss that reads the output of the graph, after the layers.
  Operations of_loss(OperationKind) const;
  LayerId output_layer() const;

 private:
  friend class LayerOperations;

  const Graph& graph_;
  std::int64_t opset_;
  const ImportedLayers& layers_;
  bool tied_;
  std::map<int, LayerId> layer_of_;  ///< By the value that it sends.
  std::set<int> words_;              ///< Inputs of the graph that a look-up reads.
};

}  // namespace stagecraft::onnx
