#pragma once

#include <string>
#include <vector>

#include "tools/stagecraft/check_input.hpp"

namespace stagecraft {

/// Judges a scenario, or the framework's own configuration of `devices` GPUs (0: not known) of a cluster (may be
/// empty), by the rules of a training framework: megatron, torchtitan, deepspeed or bridge. Throws the rules that it
/// breaks, each with its name and formula. `config` is the function of a Python file; empty: its only one.
CheckedInput check_by_framework(const std::string& framework, const std::string& file,
                                const std::vector<std::string>& sets, int devices, const std::string& cluster,
                                const std::string& config);

}  // namespace stagecraft
