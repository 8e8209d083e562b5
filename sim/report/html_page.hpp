#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stagecraft {
namespace html {

/// A page of tools/report: its HTML with placeholders {{like_this}}, its style, and all its scripts in one.
struct Source {
  std::string_view page, style, script;
};

/// The page of runs and the page of a sweep. CMake writes their text.
extern const Source runs, sweep;

}  // namespace html

/// A page with its data, which is JSON in UTF-8, and a policy that lets nothing else run or be fetched. The script runs
/// before the `parts`, which are JSON as well, have arrived.
std::string html_page(const html::Source&, const std::string& title, std::string_view json,
                      std::span<const std::string> parts = {});

}  // namespace stagecraft
