#pragma once

#include "models/configuration_reader.hpp"

namespace stagecraft {

/// Refuses a configuration of Qwen3-Next or Qwen3.5, whose layers have linear attention but for each n-th, and names
/// the nearest model that can be built.
void refuse_linear_attention(ConfigurationReader&);

}  // namespace stagecraft
