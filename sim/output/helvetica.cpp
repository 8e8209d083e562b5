// Widths of the characters of Helvetica and their bytes in Windows-1252, so that pictures measure text without a font
// file, and SVG and PDF files give it the same room.

#include "sim/output/fonts.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace stagecraft {
namespace {

constexpr std::int16_t kPlain[] = {278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
                                   556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
                                   1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
                                   667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
                                   333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
                                   556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};
constexpr std::int16_t kBold[] = {278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278,
                                  556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611,
                                  975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778,
                                  667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556,
                                  333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611,
                                  611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584};
static_assert(std::size(kPlain) == 95 && std::size(kBold) == 95);  // ' ' to '~'

/// The letters of Windows-1252 from 0xC0 on without their accents, which are as wide; a space where there is no such
/// letter.
constexpr std::string_view kBase = "AAAAAA CEEEEIIIIDNOOOOO OUUUUY  aaaaaa ceeee    onooooo ouuuuy y";
static_assert(kBase.size() == 64);

struct Special {
  unsigned char byte;
  std::uint16_t character;
  std::int16_t plain, bold;
};
/// Characters from 0x80 to 0xFF that are no letters with accents.
constexpr Special kSpecials[] = {
    {0x80, 0x20AC, 556, 556},   {0x85, 0x2026, 1000, 1000}, {0x91, 0x2018, 222, 278}, {0x92, 0x2019, 222, 278},
    {0x93, 0x201C, 333, 500},   {0x94, 0x201D, 333, 500},   {0x95, 0x2022, 350, 350}, {0x96, 0x2013, 556, 556},
    {0x97, 0x2014, 1000, 1000}, {0xA0, 0x00A0, 278, 278},   {0xA7, 0x00A7, 556, 556}, {0xA9, 0x00A9, 737, 737},
    {0xAB, 0x00AB, 556, 556},   {0xB0, 0x00B0, 400, 400},   {0xB1, 0x00B1, 584, 584}, {0xB2, 0x00B2, 333, 333},
    {0xB3, 0x00B3, 333, 333},   {0xB5, 0x00B5, 556, 611},   {0xB7, 0x00B7, 278, 278}, {0xBB, 0x00BB, 556, 556},
    {0xC6, 0x00C6, 1000, 1000}, {0xD7, 0x00D7, 584, 584},   {0xDE, 0x00DE, 667, 667}, {0xDF, 0x00DF, 611, 611},
    {0xE6, 0x00E6, 889, 889},   {0xEC, 0x00EC, 278, 278},   {0xED, 0x00ED, 278, 278}, {0xEE, 0x00EE, 278, 278},
    {0xEF, 0x00EF, 278, 278},   {0xF7, 0x00F7, 584, 584},   {0xF8, 0x00F8, 611, 611}, {0xFE, 0x00FE, 556, 611},
};

/// The next character of UTF-8 text, taken off its front; U+FFFD for a byte that begins none.
char32_t next_character(std::string_view& text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
  char32_t character = length == 1 ? first : first & (0x7F >> length);
  bool valid = length > 0 && length <= text.size();
  for (std::size_t k = 1; valid && k < length; ++k) {
    valid = (byte(k) & 0xC0) == 0x80;
    character = (character << 6) | (byte(k) & 0x3F);
  }
  text.remove_prefix(valid ? length : 1);
  return valid ? character : U'\uFFFD';
}

/// The byte of a character; 0 where the encoding lacks it.
unsigned char byte_of(char32_t character) {
  if (character >= ' ' && character <= '~') return static_cast<unsigned char>(character);
  for (const Special& s : kSpecials)
    if (s.character == character) return s.byte;
  if (character >= 0xC0 && character <= 0xFF && kBase[character - 0xC0] != ' ')
    return static_cast<unsigned char>(character);
  return 0;
}

}  // namespace

char32_t windows_1252_character(unsigned char byte) {
  for (const Special& s : kSpecials)
    if (s.byte == byte) return s.character;
  const bool is_known = (byte >= ' ' && byte <= '~') || (byte >= 0xC0 && kBase[byte - 0xC0] != ' ');
  return is_known ? byte : 0;
}

WindowsText windows_1252(std::string_view utf8) {
  WindowsText text;
  while (!utf8.empty()) {
    const unsigned char byte = byte_of(next_character(utf8));
    text.bytes += byte != 0 ? static_cast<char>(byte) : '?';
    text.replaced += byte == 0;
  }
  return text;
}

int helvetica_width(unsigned char byte, bool bold) {
  for (const Special& s : kSpecials)
    if (s.byte == byte) return bold ? s.bold : s.plain;
  if (byte >= 0xC0) byte = static_cast<unsigned char>(kBase[byte - 0xC0]);
  if (byte < ' ' || byte > '~') return 0;  // No character of the encoding that these pictures use.
  return bold ? kBold[byte - ' '] : kPlain[byte - ' '];
}

}  // namespace stagecraft
