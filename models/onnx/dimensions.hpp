#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/file.hpp"

namespace stagecraft::onnx {

/// The sizes of open dimensions, and how many samples the graph is for.
struct Dimensions {
  std::map<std::string, std::int64_t> sizes;
  std::int64_t samples = 1;
  std::vector<std::string> notes;  ///< What was assumed.

  /// The shape of a value; nothing if one of its dimensions is unknown.
  std::optional<Shape> bind(const ValueInfo&) const;
};

/// The inputs of the graph; old files list the initializers as well.
std::vector<ValueInfo> data_inputs(const File&);

/// `batch` is the size of the dimensions that count samples: those named batch or N, else the open first dimension of
/// each input. Without `batch` they are 1; if there is no such dimension, the first dimension of the first input counts
/// samples. `sizes` gives the other open dimensions by name; one without a name is called by its input, `ids.1`. Throws
/// InputError for each that is missing or unknown.
Dimensions bind_dimensions(const File&, std::optional<std::int64_t> batch,
                           const std::map<std::string, std::int64_t>& sizes);

}  // namespace stagecraft::onnx
