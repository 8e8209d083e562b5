#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stagecraft {

/// The letters of each stage of a layout as Megatron-LM writes it, without shorthand: {"Ettt", "tt", "ttmL"} for
/// "Et*3|tt|t*2,mL". `refuse` throws what is wrong at a character of the text.
std::vector<std::string> stages_of_layout(const std::string& text,
                                          const std::function<void(std::size_t at, const std::string& why)>& refuse);

}  // namespace stagecraft
