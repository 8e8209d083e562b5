#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/model_graph.hpp"

namespace stagecraft::onnx {

struct ImportOptions {
  std::optional<std::int64_t> batch = {};          ///< Samples that the graph is for; see bind_dimensions.
  std::map<std::string, std::int64_t> sizes = {};  ///< Sizes of open dimensions; see bind_dimensions.
  bool unknown_is_zero = false;                    ///< Unknown operators count as no work.
  bool keep_all = false;                           ///< Views are layers too.
};

struct Imported {
  ModelGraph model;
  std::vector<std::string> notes;        ///< The operator and shape of each layer.
  std::vector<std::string> assumptions;  ///< One sentence each.
  std::vector<std::string> warnings;
};

/// Reads a model from the bytes of an ONNX file. Throws InputError.
Imported import_model(std::string_view bytes, const std::string& file, const ImportOptions&);

/// A model/1 file for the builder `listed`, which gives the same model.
std::string to_yaml(const Imported&);

}  // namespace stagecraft::onnx
