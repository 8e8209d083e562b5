#pragma once

#include <string>
#include <vector>

namespace stagecraft {

/// The stages that a problem is about, so that equal problems of many stages are one: "stage 's3'", "each of the stages
/// s0..s7", "each of the stages s0, s1, s4..s7".
std::string stages_text(const std::vector<std::string>& names);

}  // namespace stagecraft
