#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sim/config/value.hpp"
#include "sim/core/ids.hpp"
#include "sim/model/operation.hpp"

// Operations that several model builders share, and the names of layers that the builders `listed` and `timed` read.

namespace stagecraft {

/// Resolves the inputs of layers that are written one by one, by the names of earlier layers.
class LayerNames {
 public:
  void add(const std::string& name, LayerId id);
  /// The layers that `inputs` of the next layer names, or the last one added if it names none. An unknown name is a
  /// problem at its place.
  std::vector<LayerId> inputs_of(const config::Value& layer, const std::string& path, config::Problems&) const;

 private:
  std::vector<LayerId> last_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, LayerId> id_of_;
};

using Operations = std::vector<Operation>;

Operation linear(int rows, int inputs, int outputs, std::vector<int> from = {-1});
Operation divided_linear(int rows, int inputs, int outputs, int from, Division);
Operation source_of(int rows, int columns);
Operation loss_of(OperationKind, int rows, int columns);

/// A dense layer and its activation: none, relu, tanh or gelu.
Operations dense_operations(int rows, int inputs, int outputs, const std::string& activation = "none");
Operations norm_operations(int rows, int width);
/// The projection to Q, K and V, the attention, and the projection of its output.
Operations attention_operations(int rows, int width, int heads, bool causal);
/// Norm, attention, sum, norm, two dense layers around GELU, sum (Radford et al., 2019).
Operations transformer_operations(int rows, int width, int feed_forward, int heads, bool causal, bool fused);

}  // namespace stagecraft
