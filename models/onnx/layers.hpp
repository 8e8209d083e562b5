#pragma once

#include <string>
#include <vector>

#include "models/onnx/walk.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft::onnx {

struct Layers {
  ModelGraph model;
  std::vector<std::string> notes;  ///< Of each layer: "Conv 1x64x112x112".
};

/// A layer for each input and for each node that computes, with the amounts of one of `samples` samples. Nodes that
/// follow from the file alone are none, nor those that no output needs; those that only say how numbers lie belong to
/// the layer in front of them, unless `keep_all`.
///
///   parameters   initializers that the node or what follows from the file reads, in the first layer that does; the
///                others that read it are tied to it
///   output       what other layers read of what came out; each of them receives it all
///   stash        each tensor that some gradient reads, counted once: in the first layer that reads it, or in the one
///                that made it where only its own gradient reads it
Layers make_layers(const Walk&, std::int64_t samples, bool keep_all);

/// A text of the file in printable ASCII and at most 200 characters, safe in YAML and on a terminal.
std::string readable(const std::string& text);

}  // namespace stagecraft::onnx
