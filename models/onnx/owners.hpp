#pragma once

#include <vector>

#include "models/onnx/walk.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft::onnx {

/// Counts each initializer in the layer of the first step that reads it, itself or through what follows from the file.
/// The others that read it are tied to that layer, by the largest initializer that they share with it.
void give_weights(const Walk&, const std::vector<const Step*>& steps, Layer* layers);

}  // namespace stagecraft::onnx
