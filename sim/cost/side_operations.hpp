#pragma once

#include <vector>

#include "sim/model/operation.hpp"

namespace stagecraft {

/// Operations of a layer that neither need what experts return nor make what is sent to them, as the shared experts of
/// DeepSeek-V3, by their numbers. Those up to the last product can run next to the dispatch of rows, the last product
/// next to the combine (Megatron-LM, moe-shared-expert-overlap). Empty where a layer sends no rows to experts.
struct SideOperations {
  std::vector<int> next_to_dispatch, next_to_combine;
};
SideOperations side_operations(const std::vector<Operation>&);

}  // namespace stagecraft
