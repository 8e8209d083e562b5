#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// Text for XML, SVG and HTML, inside an element as well as inside an attribute in double quotes.
std::string xml_escape(std::string_view text);

/// A cell of a CSV file, in double quotes (csv_quoted of text.hpp) where it has a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

}  // namespace stagecraft
