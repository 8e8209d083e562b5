#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/msr/piper.hpp"

namespace stagecraft::msr {

struct PiperFile {
  PiperInput input;
  std::vector<std::string> warnings;  ///< What is allowed, but looks wrong.
};

/// An input of the released Piper: JSON with nodes, their variants for each degree of tensor parallelism (TMPCs), and
/// edges. Times are seconds, sizes are bytes; syncTimeFw is known by the node in front, syncTimeBw by the one behind.
PiperFile read_piper(std::string_view json, const std::string& file);

}  // namespace stagecraft::msr
