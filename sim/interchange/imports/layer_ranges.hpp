#pragma once

#include <optional>
#include <string>

namespace stagecraft {

/// The layer that a range of record_function() or NVTX is of.
struct LayerRange {
  std::string name;  ///< As PyTorch names modules: layer_3.
  bool backward = false;
};

/// Ranges are of layers if their name ends with a number, as "layer 3", "layer.3" and "layer3"; "backward" may follow.
std::optional<LayerRange> layer_of_range(std::string text);

}  // namespace stagecraft
