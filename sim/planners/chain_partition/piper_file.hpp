#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/planners/chain_partition/piper.hpp"

// Reads Piper's input files, for `stagecraft import piper` and tests against its published results.

namespace stagecraft::chain_partition {

struct PiperFile {
  PiperInput input;
  std::vector<std::string> warnings;  ///< Input that is allowed, but looks wrong.
};

/// An input of the released Piper: JSON with nodes, their variants for each degree of tensor parallelism (TMPCs), and
/// edges. Times are seconds, sizes are bytes; the keys of syncTimeFw are input nodes, the keys of syncTimeBw readers.
PiperFile read_piper(std::string_view json, const std::string& file);

}  // namespace stagecraft::chain_partition
