// Writes a Picture as SVG for `--svg`, timeline.svg and HTML pages; text keeps its width where another font stands in
// for Helvetica.

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/output/fonts.hpp"
#include "sim/output/picture.hpp"

namespace stagecraft {
namespace {

/// Two decimals at most: a hundredth of a point is far below what is seen.
std::string svg_number(double value) { return fmt::format("{:g}", std::round(value * 100) / 100); }

class SvgWriter {
 public:
  std::string write(const Picture& p) {
    text_ = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}pt" height="{1}pt" viewBox="0 0 {0} {1}" font-family="Helvetica, Arial, 'Liberation Sans', sans-serif" role="img"><title>{2}</title>)",
        svg_number(p.width), svg_number(p.height), xml_escape(p.title));
    text_ += fmt::format("\n<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n", svg_number(p.width),
                         svg_number(p.height));
    for (const PictureItem& item : p.items) {
      std::visit([&](const auto& shape) { add(shape); }, item);
      text_ += '\n';
    }
    return text_ + "</svg>\n";
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void close(const char* tag, const std::string& tooltip) {
    if (tooltip.empty())
      text_ += "/>";
    else
      put("><title>{}</title></{}>", xml_escape(tooltip), tag);
  }

  void add(const Box& b) {
    put(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}")", svg_number(b.left), svg_number(b.top),
        svg_number(b.width), svg_number(b.height), b.fill);
    close("rect", b.tooltip);
  }
  void add(const Polyline& l) {
    put(R"(<polyline fill="none" stroke="{}" stroke-width="{}" points=")", l.color, svg_number(l.width));
    for (std::size_t n = 0; n < l.places.size(); ++n)
      put("{}{},{}", n == 0 ? "" : " ", svg_number(l.places[n].x), svg_number(l.places[n].y));
    text_ += '"';
    if (!l.dash.empty()) put(R"( stroke-dasharray="{}")", fmt::join(l.dash, " "));
    text_ += "/>";
  }
  void add(const Mark& m) {
    const double r = m.radius;
    const auto polygon = [&](std::initializer_list<PicturePoint> corners) {
      text_ += "<polygon points=\"";
      for (const PicturePoint& c : corners) put("{},{} ", svg_number(m.center.x + c.x), svg_number(m.center.y + c.y));
      put(R"(" fill="{}")", m.fill);
      close("polygon", m.tooltip);
    };
    if (m.shape == MarkShape::Circle) {
      put(R"(<circle cx="{}" cy="{}" r="{}" fill="{}")", svg_number(m.center.x), svg_number(m.center.y), svg_number(r),
          m.fill);
      close("circle", m.tooltip);
    } else if (m.shape == MarkShape::Square) {
      polygon({{-r, -r}, {r, -r}, {r, r}, {-r, r}});
    } else if (m.shape == MarkShape::Diamond) {
      polygon({{0, -1.3 * r}, {1.3 * r, 0}, {0, 1.3 * r}, {-1.3 * r, 0}});
    } else {
      polygon({{0, -1.3 * r}, {1.2 * r, r}, {-1.2 * r, r}});
    }
  }
  void add(const Label& l) {
    constexpr const char* kAnchors[] = {"start", "middle", "end"};
    if (l.upward)
      put(R"svg(<text transform="translate({} {}) rotate(-90)")svg", svg_number(l.baseline.x),
          svg_number(l.baseline.y));
    else
      put(R"(<text x="{}" y="{}")", svg_number(l.baseline.x), svg_number(l.baseline.y));
    put(R"( font-size="{}" text-anchor="{}" fill="{}"{})", svg_number(l.size), kAnchors[static_cast<int>(l.anchor)],
        l.color, l.bold ? " font-weight=\"bold\"" : "");
    // Where Helvetica is not installed, another font has to take the same room.
    if (!l.text.empty() && windows_1252(l.text).replaced == 0)
      put(R"( textLength="{}" lengthAdjust="spacingAndGlyphs")", svg_number(text_width(l.text, l.size, l.bold)));
    put(">{}</text>", xml_escape(l.text));
  }

  std::string text_;
};

}  // namespace

std::string to_svg(const Picture& picture) { return SvgWriter().write(picture); }

}  // namespace stagecraft
