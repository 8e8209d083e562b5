// Writes a Picture as a PDF file of one page, for `--pdf`.

#include <cmath>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/output/helvetica.hpp"
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

/// The operators that draw the items.
class PdfContent {
 public:
  explicit PdfContent(const Picture& p) : height_(p.height) {
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
    const double back = share * text_width(l.text, l.size, l.bold);
    put("BT {} rg /F{} {} Tf {} {} Tm {} Tj ET\n", color(l.color), l.bold ? 2 : 1, pdf_number(l.size),
        l.upward ? "0 1 -1 0" : "1 0 0 1",
        l.upward ? at(l.baseline.x, l.baseline.y + back) : at(l.baseline.x - back, l.baseline.y),
        pdf_string(encoded.bytes));
  }

  double height_;
};

std::string font(bool bold) {
  std::string widths;
  for (int byte = ' '; byte <= 0xFF; ++byte)
    widths += fmt::format("{}{}", widths.empty() ? "" : " ", helvetica_width(static_cast<unsigned char>(byte), bold));
  return fmt::format(
      "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica{} /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 255 "
      "/Widths [{}] >>",
      bold ? "-Bold" : "", widths);
}

}  // namespace

PdfFile to_pdf(const Picture& picture) {
  const PdfContent content(picture);
  const std::vector<std::string> objects{
      "<< /Type /Catalog /Pages 2 0 R >>",
      "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
      fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 4 0 R "
                  "/Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>",
                  pdf_number(picture.width), pdf_number(picture.height)),
      fmt::format("<< /Length {} >>\nstream\n{}endstream", content.text.size(), content.text),
      font(false),
      font(true),
      fmt::format("<< /Title {} /Producer (stagecraft) >>", pdf_string(windows_1252(picture.title).bytes)),
  };
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
  return {std::move(file), content.replaced};
}

}  // namespace stagecraft
