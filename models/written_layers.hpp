#pragma once

#include <functional>
#include <string>

#include "models/graph_writer.hpp"

// The layers of the builders `listed` and `timed`, which a file writes out one by one.

namespace stagecraft {

/// The field `layers`, of maps with the fields `name`, `inputs` and others.
config::Field written_layers_field(const config::MapSpec& layer);

/// Reads what a builder's file says of a layer besides its name and inputs: its map and the path of that, and the bytes
/// that it reads for one sample.
using LayerReader =
    std::function<void(const config::Value&, const std::string& path, Bytes inputs, Layer&, config::Problems&)>;

/// The graph of these layers, whose type is `builder`.
ModelGraph read_written_layers(const config::Value& map, const std::string& builder, const LayerReader& read);

}  // namespace stagecraft
