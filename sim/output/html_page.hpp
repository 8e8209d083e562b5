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

/// The pages of runs, of a sweep, of a search and of reproduced results, and the playground. CMake writes their text.
extern const Source runs, sweep, search, reproduced, playground;

}  // namespace html

/// A page with its data, which is JSON in UTF-8, and a policy that lets nothing else run or be fetched. The script runs
/// before the `parts`, which are JSON as well, have arrived. `picture` is SVG with its names escaped. `more_policy`
/// adds directives that permit more.
std::string html_page(const html::Source&, const std::string& title, std::string_view json,
                      std::span<const std::string> parts = {}, const std::string& picture = {},
                      const std::string& more_policy = {});
/// A page whose content is HTML with its names escaped, under the same policy as html_page().
std::string html_content_page(const html::Source&, const std::string& title, const std::string& content);

}  // namespace stagecraft
