#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/model_graph.hpp"

namespace stagecraft::onnx {

struct ImportOptions {
  std::optional<std::int64_t> batch = {};          ///< See bind_dimensions.
  std::map<std::string, std::int64_t> sizes = {};  ///< The same.
  bool unknown_is_zero = false;                    ///< Operators nobody knows count as no work.
  bool keep_all = false;                           ///< Operators that only say how numbers lie are layers too.
};

struct Imported {
  ModelGraph model;
  std::vector<std::string> notes;        ///< Of each layer, its operator and shape.
  std::vector<std::string> assumptions;  ///< One sentence each.
  std::vector<std::string> warnings;
};

/// A model from the bytes of an ONNX file. Throws InputError.
Imported import_model(std::string_view bytes, const std::string& file, const ImportOptions&);

/// A model/1 file of the builder `listed`, which reads back to the same.
std::string to_yaml(const Imported&);

}  // namespace stagecraft::onnx
