// Writes a Picture as a PDF file of one page, for `--pdf`.

#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "sim/core/sha256.hpp"
#include "sim/core/text.hpp"
#include "sim/output/fonts.hpp"
#include "sim/output/picture.hpp"

// The file format is PDF 1.4 (Adobe, PDF Reference, third edition, 2001): objects, a table of their offsets (section
// 3.4), and one content stream of operators (appendix A). PDF counts y upward.

namespace stagecraft {
namespace {

std::string pdf_number(double value) { return fmt::format("{:g}", std::round(value * 100) / 100); }

/// A string of PDF: parentheses and backslashes are escaped.
std::string pdf_string(std::string_view bytes) {
  std::string text = "(";
  for (const char c : bytes) {
    if (c == '(' || c == ')' || c == '\\') text += '\\';
    text += c;
  }
  return text + ")";
}

/// The font of plain or bold text, with the characters that a picture has.
class PdfFont {
 public:
  PdfFont(const Picture& p, bool bold) : bold_(bold), source_(embedded_font(bold)) {
    std::set<char32_t> characters{'?'};
    for (const PictureItem& item : p.items)
      if (const Label* label = std::get_if<Label>(&item); label && label->bold == bold)
        for (const char byte : windows_1252(label->text).bytes)
          characters.insert(windows_1252_character(static_cast<unsigned char>(byte)));
    if (is_embedded()) subset_ = font_subset(source_.bytes, std::u32string(characters.begin(), characters.end()));
  }

  bool is_embedded() const { return !source_.bytes.empty(); }

  /// The width of a byte in thousandths of the size; 0 where the picture has no such character.
  int width(unsigned char byte) const {
    if (!is_embedded()) return helvetica_width(byte, bold_);
    const auto at = subset_.metrics.widths.find(windows_1252_character(byte));
    return at == subset_.metrics.widths.end() ? 0 : at->second;
  }
  int width_of(std::string_view bytes) const {
    int sum = 0;
    for (const char byte : bytes) sum += width(static_cast<unsigned char>(byte));
    return sum;
  }

  /// The font, and where it is embedded its descriptor and its file, which have the next two numbers after
  /// `descriptor`.
  std::string object(std::size_t descriptor) const {
    std::string widths;
    for (int byte = ' '; byte <= 0xFF; ++byte)
      widths += fmt::format("{}{}", widths.empty() ? "" : " ", width(static_cast<unsigned char>(byte)));
    return fmt::format(
        "<< /Type /Font /Subtype /{} /BaseFont /{} /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 255 /Widths "
        "[{}]{} >>",
        is_embedded() ? "TrueType" : "Type1", name(), widths,
        is_embedded() ? fmt::format(" /FontDescriptor {} 0 R", descriptor) : "");
  }
  std::string descriptor(std::size_t file) const {
    const FontMetrics& m = subset_.metrics;
    constexpr int kNonsymbolic = 32;  // Table 5.20 of the reference.
    return fmt::format(
        "<< /Type /FontDescriptor /FontName /{} /Flags {} /FontBBox [{}] /ItalicAngle 0 /Ascent {} /Descent {} "
        "/CapHeight {} /StemV {} /FontFile2 {} 0 R >>",
        name(), kNonsymbolic, fmt::join(m.box, " "), m.ascent, m.descent, m.cap_height, bold_ ? 140 : 80, file);
  }
  std::string file() const {
    return fmt::format("<< /Length {0} /Length1 {0} >>\nstream\n{1}\nendstream", subset_.bytes.size(), subset_.bytes);
  }

 private:
  /// A subset begins with six letters that depend on its characters.
  std::string name() const {
    if (!is_embedded()) return bold_ ? "Helvetica-Bold" : "Helvetica";
    std::string tag;
    for (const char digit : sha256(subset_.bytes).substr(0, 6))
      tag += static_cast<char>('A' + (digit > '9' ? digit - 'a' + 10 : digit - '0'));
    return tag + "+" + std::string(source_.name);
  }

  bool bold_;
  EmbeddedFont source_;
  FontSubset subset_;
};

/// The operators that draw the items.
class PdfContent {
 public:
  PdfContent(const Picture& p, const std::array<PdfFont, 2>& fonts) : fonts_(fonts), height_(p.height) {
    for (const PictureItem& item : p.items) std::visit([&](const auto& shape) { add(shape); }, item);
  }
  std::string text;
  int replaced = 0;

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  }
  /// "#ff8000" as "1 0.502 0".
  static std::string color(const std::string& hex) {
    const auto bits = static_cast<std::uint32_t>(std::stoul(hex.substr(1), nullptr, 16));
    const auto part = [&](int shift) { return ((bits >> shift) & 0xFF) / 255.0; };
    return fmt::format("{:.3g} {:.3g} {:.3g}", part(16), part(8), part(0));
  }
  std::string at(double x, double y) const { return pdf_number(x) + " " + pdf_number(height_ - y); }

  void add(const Box& b) {
    put("{} rg {} {} {} re f\n", color(b.fill), at(b.left, b.top + b.height), pdf_number(b.width),
        pdf_number(b.height));
  }
  void add(const Polyline& l) {
    if (l.places.size() < 2) return;
    put("{} RG {} w [{}] 0 d ", color(l.color), pdf_number(l.width), fmt::join(l.dash, " "));
    for (std::size_t n = 0; n < l.places.size(); ++n)
      put("{} {} ", at(l.places[n].x, l.places[n].y), n == 0 ? "m" : "l");
    text += "S\n";
  }
  void polygon(const Mark& m, std::initializer_list<PicturePoint> corners) {
    const char* op = "m";
    for (const PicturePoint& c : corners) {
      put("{} {} ", at(m.center.x + c.x, m.center.y + c.y), op);
      op = "l";
    }
    text += "h f\n";
  }
  void add(const Mark& m) {
    const double r = m.radius;
    put("{} rg ", color(m.fill));
    if (m.shape == MarkShape::Square) return polygon(m, {{-r, -r}, {r, -r}, {r, r}, {-r, r}});
    if (m.shape == MarkShape::Diamond) return polygon(m, {{0, -1.3 * r}, {1.3 * r, 0}, {0, 1.3 * r}, {-1.3 * r, 0}});
    if (m.shape == MarkShape::Triangle) return polygon(m, {{0, -1.3 * r}, {1.2 * r, r}, {-1.2 * r, r}});
    const double bend = r * 4 * (std::sqrt(2) - 1) / 3;  // Control points of a quarter of a circle.
    const auto p = [&](double x, double y) { return at(m.center.x + x, m.center.y + y); };
    put("{} m {} {} {} c {} {} {} c {} {} {} c {} {} {} c f\n", p(r, 0), p(r, bend), p(bend, r), p(0, r), p(-bend, r),
        p(-r, bend), p(-r, 0), p(-r, -bend), p(-bend, -r), p(0, -r), p(bend, -r), p(r, -bend), p(r, 0));
  }
  void add(const Label& l) {
    const WindowsText encoded = windows_1252(l.text);
    replaced += encoded.replaced;
    const double share = l.anchor == Anchor::Start ? 0 : l.anchor == Anchor::Middle ? 0.5 : 1;
    const double width = text_width(l.text, l.size, l.bold), back = share * width;
    const double natural = fonts_[l.bold].width_of(encoded.bytes) * l.size / 1000;
    put("BT {} rg /F{} {} Tf {} Tz {} {} Tm {} Tj ET\n", color(l.color), l.bold ? 2 : 1, pdf_number(l.size),
        pdf_number(natural > 0 ? 100 * width / natural : 100), l.upward ? "0 1 -1 0" : "1 0 0 1",
        l.upward ? at(l.baseline.x, l.baseline.y + back) : at(l.baseline.x - back, l.baseline.y),
        pdf_string(encoded.bytes));
  }

  const std::array<PdfFont, 2>& fonts_;
  double height_;
};

}  // namespace

PdfFile to_pdf(const Picture& picture) {
  const std::array<PdfFont, 2> fonts{PdfFont(picture, false), PdfFont(picture, true)};
  const PdfContent content(picture, fonts);
  std::vector<std::string> objects{
      "<< /Type /Catalog /Pages 2 0 R >>",
      "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
      fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 4 0 R "
                  "/Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>",
                  pdf_number(picture.width), pdf_number(picture.height)),
      fmt::format("<< /Length {} >>\nstream\n{}endstream", content.text.size(), content.text),
      fonts[0].object(8),
      fonts[1].object(10),
      fmt::format("<< /Title {} /Producer (stagecraft) >>", pdf_string(windows_1252(picture.title).bytes)),
  };
  for (const PdfFont& font : fonts) {
    if (!font.is_embedded()) continue;
    objects.push_back(font.descriptor(objects.size() + 2));
    objects.push_back(font.file());
  }
  // The comment with bytes above 127 tells programs that copy the file that it is not text.
  std::string file = "%PDF-1.4\n%\xE2\xE3\xCF\xD3\n% Written by stagecraft.\n";
  std::string offsets = fmt::format("xref\n0 {}\n0000000000 65535 f \n", objects.size() + 1);
  for (std::size_t n = 0; n < objects.size(); ++n) {
    offsets += fmt::format("{:010} 00000 n \n", file.size());
    file += fmt::format("{} 0 obj\n{}\nendobj\n", n + 1, objects[n]);
  }
  const std::size_t start = file.size();
  file += fmt::format("{}trailer\n<< /Size {} /Root 1 0 R /Info 7 0 R >>\nstartxref\n{}\n%%EOF\n", offsets,
                      objects.size() + 1, start);
  return {std::move(file), content.replaced, fonts[0].is_embedded()};
}

}  // namespace stagecraft
