#pragma once

#include <string_view>

namespace stagecraft::html {

/// A page of tools/report: its HTML with places {{like_this}}, its style, and all its scripts in one.
struct Source {
  std::string_view page, style, script;
};

/// The page of runs and the page of a sweep. CMake writes their text.
extern const Source runs, sweep;

}  // namespace stagecraft::html
