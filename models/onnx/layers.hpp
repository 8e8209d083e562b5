#pragma once

#include <string>
#include <vector>

#include "models/onnx/graph.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft::onnx {

struct Layers {
  ModelGraph model;
  std::vector<std::string> notes;  ///< One per layer, such as "Conv 1x64x112x112".
};

/// A layer for each input and for each node that computes, with amounts per sample. Nodes that depend on the file alone
/// and nodes that no output needs are not layers; views belong to the layer before them, unless `keep_all`.
///
///   parameters   initializers that the node reads, itself or through nodes that depend on the file alone, in the first
///                layer that reads them; later layers that read them are tied to that one
///   output       the outputs that other layers read; each of these receives all of them
///   stash        each tensor that a gradient reads, counted once: in the first layer that reads it, or in the one that
///                computes it if only its own gradient reads it
Layers make_layers(const Graph&, std::int64_t samples, bool keep_all);

/// A text of the file in printable ASCII and at most 200 characters, safe in YAML and on a terminal.
std::string readable(const std::string& text);

}  // namespace stagecraft::onnx
