#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/graph.hpp"
#include "sim/model/model_graph.hpp"

// Imports an ONNX file as a model, for `stagecraft import onnx`.

namespace stagecraft::onnx {

struct ImportOptions {
  std::optional<std::int64_t> batch = {};          ///< Samples that the graph is for; see bind_dimensions.
  std::map<std::string, std::int64_t> sizes = {};  ///< Sizes of open dimensions; see bind_dimensions.
  bool unknown_is_zero = false;                    ///< Unknown operators count as no work.
  bool keep_all = false;                           ///< Views are layers too.
};

struct ImportedModel {
  ModelGraph model;
  std::vector<std::string> notes;        ///< The operator and shape of each layer.
  std::vector<std::string> assumptions;  ///< One sentence each.
  std::vector<std::string> warnings;
};

/// Reads a model from the bytes of an ONNX file. Throws InputError.
ImportedModel import_model(std::string_view bytes, const std::string& file, const ImportOptions&);

/// A model/1 file for the builder `listed`, which gives the same model.
std::string to_yaml(const ImportedModel&);

struct ImportedLayers {
  ModelGraph model;
  std::vector<std::string> notes;  ///< One per layer, such as "Conv 1x64x112x112".
  std::vector<int> values;         ///< One per layer: the input of the graph, or the first output of the node.
};

/// A layer for each input and for each node that computes, with amounts per sample. Nodes that depend on the file alone
/// and nodes that no output needs are not layers; views belong to the layer before them, unless `keep_all`.
///
///   parameters   initializers that the node reads, itself or through nodes that depend on the file alone, in the first
///                layer that reads them; later layers that read them are tied to that one
///   output       the outputs that other layers read; each of these receives all of them
///   stash        each tensor that a gradient reads, counted once: in the first layer that reads it, or in the one that
///                computes it if only its own gradient reads it
ImportedLayers make_layers(const Graph&, std::int64_t samples, bool keep_all);

/// The precision of the type that most weights have.
Precision precision_of(const File&);

/// A text of the file in printable ASCII and at most 200 characters, safe in YAML and on a terminal.
std::string readable(const std::string& text);

}  // namespace stagecraft::onnx
