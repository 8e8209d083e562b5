#pragma once

#include <string_view>

namespace stagecraft {

/// A font that the build found, with the outlines of the characters of Windows-1252 alone.
struct EmbeddedFont {
  std::string_view name;   ///< "DejaVuSansCondensed"; empty where the build found none.
  std::string_view bytes;  ///< A TrueType file.
};

/// The font of the text in PDF files. The build writes it, from a font whose license permits that.
EmbeddedFont embedded_font(bool bold);

}  // namespace stagecraft
