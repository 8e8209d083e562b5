#pragma once

#include <string>
#include <vector>

#include "sim/model/operation.hpp"

// Operations that several model builders share.

namespace stagecraft {

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
