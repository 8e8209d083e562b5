// Cuts a few characters out of a TrueType font, so that a PDF file embeds what its text needs and no more.

#include "sim/output/fonts.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

constexpr int kComponentWords = 1, kComponentScale = 8, kMoreComponents = 0x20, kComponentScales = 0x40,
              kComponentMatrix = 0x80, kComponentHints = 0x100;  // Flags of parts of a composite glyph.

/// The tables of a font file; numbers have the high byte first.
class FontReader {
 public:
  explicit FontReader(std::string_view file) : file_(file) {
    const int count = number(file_, 4, 2);
    for (int k = 0; k < count; ++k) {
      const std::size_t entry = 12 + 16 * k;
      tables_[std::string(part(file_, entry, 4))] =
          part(file_, number(file_, entry + 8, 4), number(file_, entry + 12, 4));
    }
  }

  std::string_view table(const std::string& name) const {
    const auto at = tables_.find(name);
    if (at == tables_.end()) refuse();
    return at->second;
  }
  bool has(const std::string& name) const { return tables_.count(name) > 0; }
  int word(const std::string& name, std::size_t at) const { return number(table(name), at, 2); }
  int signed_word(const std::string& name, std::size_t at) const { return static_cast<std::int16_t>(word(name, at)); }

  static std::string_view part(std::string_view text, std::size_t at, std::size_t length) {
    if (at > text.size() || length > text.size() - at) refuse();
    return text.substr(at, length);
  }
  static int number(std::string_view text, std::size_t at, std::size_t bytes) {
    std::uint32_t value = 0;
    for (const char c : part(text, at, bytes)) value = (value << 8) | static_cast<unsigned char>(c);
    return static_cast<int>(value);
  }

  /// The number of the glyph of a character; 0: it has none.
  int glyph_of(char32_t character) const {
    const std::string_view cmap = unicode_map();
    const int segments = number(cmap, 6, 2) / 2;
    const auto entry = [&](int list, int k) {  // Lists of ends, starts, differences and offsets.
      return 14 + 2 * (list * segments + k) + (list > 0 ? 2 : 0);
    };
    for (int k = 0; k < segments; ++k) {
      if (static_cast<int>(character) > number(cmap, entry(0, k), 2)) continue;
      const int first = number(cmap, entry(1, k), 2), offset = number(cmap, entry(3, k), 2);
      if (static_cast<int>(character) < first) return 0;
      int glyph = static_cast<int>(character);
      if (offset > 0) {
        const std::size_t at = entry(3, k) + (offset + 2 * (glyph - first));
        glyph = number(cmap, at, 2);
        if (glyph == 0) return 0;
      }
      return (glyph + number(cmap, entry(2, k), 2)) & 0xFFFF;
    }
    return 0;
  }

  std::string_view outline(int glyph) const {
    const bool is_long = word("head", 50) != 0;
    const auto place = [&](int n) {
      const std::size_t at = n;
      return is_long ? number(table("loca"), 4 * at, 4) : 2 * word("loca", 2 * at);
    };
    const std::size_t from = place(glyph), to = place(glyph + 1);
    if (to < from) refuse();
    return part(table("glyf"), from, to - from);
  }

  int advance(int glyph) const { return word("hmtx", 4 * (std::min(glyph, word("hhea", 34) - 1))); }

  [[noreturn]] static void refuse() { throw InputError("this is no TrueType font with a map of Unicode", ""); }

 private:
  /// The map from Unicode in format 4.
  std::string_view unicode_map() const {
    const std::string_view cmap = table("cmap");
    for (int k = 0; k < number(cmap, 2, 2); ++k) {
      const std::size_t entry = 4 + 8 * k;
      if (number(cmap, entry, 2) != 3 || number(cmap, entry + 2, 2) != 1) continue;
      const std::string_view map = cmap.substr(std::min<std::size_t>(cmap.size(), number(cmap, entry + 4, 4)));
      if (number(map, 0, 2) == 4) return map;
    }
    refuse();
  }

  std::string_view file_;
  std::map<std::string, std::string_view> tables_;
};

void put(std::string& out, std::int64_t value, int bytes) {
  for (int k = bytes - 1; k >= 0; --k) out += static_cast<char>((value >> (8 * k)) & 0xFF);
}

class FontCutter {
 public:
  FontCutter(std::string_view file, std::u32string_view characters) : font_(file) {
    number_of(0);  // The empty glyph is always the first.
    for (const char32_t c : characters) characters_[c] = 0;
    for (auto& [c, glyph] : characters_) glyph = number_of(font_.glyph_of(c));
    for (std::size_t k = 0; k < glyphs_.size(); ++k) outlines_.push_back(copied(font_.outline(glyphs_[k])));
  }

  FontSubset cut() {
    FontSubset subset{file(), {}};
    const double scale = 1000.0 / font_.word("head", 18);
    const auto thousandths = [&](int units) { return static_cast<int>(units * scale + (units < 0 ? -0.5 : 0.5)); };
    for (std::size_t k = 0; k < 4; ++k) subset.metrics.box[k] = thousandths(font_.signed_word("head", 36 + 2 * k));
    subset.metrics.ascent = thousandths(font_.signed_word("hhea", 4));
    subset.metrics.descent = thousandths(font_.signed_word("hhea", 6));
    const bool has_height = font_.has("OS/2") && font_.word("OS/2", 0) >= 2;
    subset.metrics.cap_height = has_height ? thousandths(font_.signed_word("OS/2", 88)) : subset.metrics.ascent;
    for (const auto& [c, glyph] : characters_) subset.metrics.widths[c] = thousandths(font_.advance(glyphs_[glyph]));
    return subset;
  }

 private:
  /// The number of a glyph in the subset, which it joins.
  std::size_t number_of(int glyph) {
    const auto [at, is_new] = numbers_.try_emplace(glyph, glyphs_.size());
    if (is_new) glyphs_.push_back(glyph);
    return at->second;
  }

  /// An outline without hints; parts of a composite have their numbers in the subset.
  std::string copied(std::string_view outline) {
    if (outline.empty()) return {};
    const auto contours = static_cast<std::int16_t>(FontReader::number(outline, 0, 2));
    std::string out = contours >= 0 ? simple(outline, contours) : composite(outline);
    while (out.size() % 4 != 0) out += '\0';
    return out;
  }
  static std::string simple(std::string_view outline, int contours) {
    const std::size_t hints = 10 + 2 * contours;
    const std::size_t length = FontReader::number(outline, hints, 2);
    std::string out(outline.substr(0, hints));
    put(out, 0, 2);
    const std::size_t rest = hints + 2 + length;
    return out.append(FontReader::part(outline, rest, outline.size() - rest));
  }
  std::string composite(std::string_view outline) {
    std::string out(FontReader::part(outline, 0, 10));
    int flags = kMoreComponents;
    for (std::size_t at = 10; flags & kMoreComponents;) {
      flags = FontReader::number(outline, at, 2);
      const std::size_t length = ((flags & kComponentWords) ? 4 : 2) + ((flags & kComponentScale)    ? 2
                                                                        : (flags & kComponentScales) ? 4
                                                                        : (flags & kComponentMatrix) ? 8
                                                                                                     : 0);
      put(out, flags & ~kComponentHints, 2);
      put(out, static_cast<std::int64_t>(number_of(FontReader::number(outline, at + 2, 2))), 2);
      out.append(FontReader::part(outline, at + 4, length));
      at += 4 + length;
    }
    return out;
  }

  std::string horizontal_metrics() const {
    std::string text;
    for (const int glyph : glyphs_) {
      put(text, font_.advance(glyph), 2);
      const std::string_view outline = font_.outline(glyph);
      put(text, outline.empty() ? 0 : FontReader::number(outline, 2, 2), 2);  // Its left side.
    }
    return text;
  }

  /// A map of format 4 with a segment for each character.
  std::string character_map() const {
    const auto segments = static_cast<std::int64_t>(characters_.size()) + 1;
    std::string ends, starts, differences, offsets;
    for (const auto& [c, glyph] : characters_) {
      put(ends, c, 2), put(starts, c, 2);
      put(differences, static_cast<std::int64_t>(glyph) - static_cast<std::int64_t>(c), 2), put(offsets, 0, 2);
    }
    put(ends, 0xFFFF, 2), put(starts, 0xFFFF, 2), put(differences, 1, 2), put(offsets, 0, 2);
    std::string map;
    put(map, 0, 2), put(map, 1, 2), put(map, 3, 2), put(map, 1, 2), put(map, 12, 4);
    put(map, 4, 2), put(map, 16 + 8 * segments, 2), put(map, 0, 2), put(map, 2 * segments, 2);
    put_search(map, segments, 2);
    return map + ends + std::string(2, '\0') + starts + differences + offsets;
  }

  /// The fields of a binary search over `count` entries of `size` bytes.
  static void put_search(std::string& out, std::int64_t count, std::int64_t size) {
    std::int64_t power = 1, log = 0;
    for (; 2 * power <= count; power *= 2) ++log;
    put(out, power * size, 2), put(out, log, 2), put(out, (count - power) * size, 2);
  }

  std::string file() const {
    std::map<std::string, std::string> tables;
    std::string outlines, places;
    for (const std::string& outline : outlines_) {
      put(places, static_cast<std::int64_t>(outlines.size()), 4);
      outlines += outline;
    }
    put(places, static_cast<std::int64_t>(outlines.size()), 4);
    const auto changed = [&](const char* name, std::size_t at, std::int64_t value, int bytes) {
      std::string text(font_.table(name)), number;
      put(number, value, bytes);
      return text.replace(at, number.size(), number);
    };
    const auto count = static_cast<std::int64_t>(glyphs_.size());
    tables["cmap"] = character_map();
    tables["glyf"] = std::move(outlines);
    tables["head"] = changed("head", 50, 1, 2).replace(8, 4, std::string(4, '\0'));
    tables["hhea"] = changed("hhea", 34, count, 2);
    tables["hmtx"] = horizontal_metrics();
    tables["loca"] = std::move(places);
    tables["maxp"] = changed("maxp", 4, count, 2);
    if (font_.has("OS/2")) tables["OS/2"] = std::string(font_.table("OS/2"));
    return joined(tables);
  }

  static std::int64_t checksum(std::string_view table) {
    std::uint32_t sum = 0;
    for (std::size_t k = 0; k < table.size(); ++k)
      sum += static_cast<std::uint32_t>(static_cast<unsigned char>(table[k])) << (24 - 8 * (k % 4));
    return sum;
  }
  static std::string joined(const std::map<std::string, std::string>& tables) {
    const auto count = static_cast<std::int64_t>(tables.size());
    std::string head, body;
    put(head, 0x00010000, 4), put(head, count, 2), put_search(head, count, 16);
    std::size_t at = 12 + 16 * tables.size();
    for (const auto& [name, text] : tables) {
      head += name;
      put(head, checksum(text), 4), put(head, static_cast<std::int64_t>(at + body.size()), 4);
      put(head, static_cast<std::int64_t>(text.size()), 4);
      body += text;
      while (body.size() % 4 != 0) body += '\0';
    }
    return head + body;
  }

  FontReader font_;
  std::map<char32_t, std::size_t> characters_;  ///< The glyph of each, numbered as in the subset.
  std::map<int, std::size_t> numbers_;
  std::vector<int> glyphs_;
  std::vector<std::string> outlines_;
};

}  // namespace

FontSubset font_subset(std::string_view font_file, std::u32string_view characters) {
  return FontCutter(font_file, characters).cut();
}

}  // namespace stagecraft
