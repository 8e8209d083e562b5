#pragma once

#include <string_view>

namespace stagecraft::html {

/// tools/report/page.html with places {{like_this}}, page.css, and all scripts in one. CMake writes their text.
extern const std::string_view page, style, script;

}  // namespace stagecraft::html
