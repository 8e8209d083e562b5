#pragma once

#include <string>

#include "sim/output/html_page.hpp"

namespace stagecraft {
namespace html {

/// The page of reproduced results. CMake writes its text.
extern const Source reproduced;

}  // namespace html

/// A page whose content is HTML with its names escaped, under the same policy as html_page().
std::string html_content_page(const html::Source&, const std::string& title, const std::string& content);

}  // namespace stagecraft
