#pragma once

#include <cstdint>
#include <string>

namespace stagecraft {

/// What an option of Megatron-LM without a field in scenarios means for the time of an iteration.
enum class MegatronUse : std::uint8_t { Unmodeled, WithoutUse, Unknown };
MegatronUse megatron_use(const std::string& option);

}  // namespace stagecraft
