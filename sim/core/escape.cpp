#include "sim/core/escape.hpp"

#include "sim/core/text.hpp"

namespace stagecraft {

std::string xml_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string csv_cell(std::string_view text) {
  return text.find_first_of(",\"\n") == std::string_view::npos ? std::string(text) : csv_quoted(text);
}

}  // namespace stagecraft
