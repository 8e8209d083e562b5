#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/file.hpp"

namespace stagecraft::onnx {

/// The sizes that the file leaves open, and how many samples its graph is for.
struct Dimensions {
  std::map<std::string, std::int64_t> sizes;
  std::int64_t samples = 1;
  std::vector<std::string> notes;  ///< What was assumed.

  /// Nothing where a dimension is not known.
  std::optional<Shape> bind(const ValueInfo&) const;
};

/// The inputs of the graph; old files list the initializers as well.
std::vector<ValueInfo> data_inputs(const File&);

/// `batch` is the size of the dimensions that count samples: those named batch or N, else the first of each input that
/// has no size. Without it they are 1, or the first input has as many samples as its first dimension says. `sizes` are
/// those of the other names; one without a name is called by its input, `ids.1`. Throws InputError for each that is
/// missing or unknown.
Dimensions bind_dimensions(const File&, std::optional<std::int64_t> batch,
                           const std::map<std::string, std::int64_t>& sizes);

}  // namespace stagecraft::onnx
