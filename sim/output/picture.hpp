#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stagecraft {

/// A place in a picture: points (1/72 inch) from its left and top.
struct PicturePoint {
  double x = 0, y = 0;
};

struct Box {
  double left = 0, top = 0, width = 0, height = 0;
  std::string fill;     ///< "#3a78bd".
  std::string tooltip;  ///< Shown by browsers; a PDF has none.
};

struct Polyline {
  std::vector<PicturePoint> places;
  std::string color;
  double width = 1;
  std::vector<double> dash = {};  ///< Lengths of strokes and gaps in turn; empty: solid.
};

enum class MarkShape { Circle, Square, Triangle, Diamond };

struct Mark {
  PicturePoint center;
  double radius = 2;
  std::string fill;
  MarkShape shape = MarkShape::Circle;
  std::string tooltip = {};
};

enum class Anchor { Start, Middle, End };

/// One line of text in Helvetica.
struct Label {
  PicturePoint baseline;
  std::string text;
  double size = 7;
  Anchor anchor = Anchor::Start;
  std::string color = "#18202a";
  bool bold = false;
  bool upward = false;  ///< Turned by 90 degrees, so that it reads from bottom to top.
};

using PictureItem = std::variant<Box, Polyline, Mark, Label>;

/// A drawing as a value: SVG and PDF are two ways to write it.
struct Picture {
  std::string title;  ///< For readers of the file; what is drawn is among the items.
  double width = 0, height = 0;
  std::vector<PictureItem> items;  ///< Later ones lie above earlier ones.
};

/// The width of a picture and the size of its text, in points.
struct PictureSize {
  double width, text;
  std::optional<std::string> title = {};  ///< In place of the picture's own; empty text: none.
};
inline const PictureSize kColumnPicture{239.76, 6.5};  ///< One column of a paper: 3.33 inches.
inline const PictureSize kPagePicture{504, 7.5};       ///< Two columns: 7 inches.
inline const PictureSize kScreenPicture{1180, 12};

/// The width of a line in Helvetica, by Adobe's font metrics.
double text_width(std::string_view text, double size, bool bold = false);

/// The text, or its start and its end with "..." between them, so that it is not wider than `width`.
std::string fitted_text(std::string_view text, double size, double width, bool bold = false);

/// Lines of at most `width`, broken at spaces. A longer word, and what remains for the last of `max_lines`, is fitted.
std::vector<std::string> wrapped_text(std::string_view text, double size, double width, std::size_t max_lines,
                                      bool bold = false);

/// Draws the title of the picture below `top`, in up to three lines; returns where it ends.
double add_title(Picture&, double text_size, double top);

/// Round numbers (1, 2 or 5 times a power of ten) in [low, high], at most `max_ticks` of them.
std::vector<double> round_ticks(double low, double high, int max_ticks);
/// A tick with as many decimals as its neighbors need.
std::string tick_text(double tick, double step);

/// A color for series `n`, which color-blind people can distinguish from its neighbors.
const char* series_color(std::size_t n);

/// The pictures next to each other, with the title of the first.
Picture side_by_side(std::vector<Picture>);

std::string to_svg(const Picture&);

/// A PDF 1.4 file of one page. It embeds the characters of embedded_font() that it has, as wide as in Helvetica; a
/// build without that font names Helvetica, which readers have. It has the characters of Windows-1252; `replaced` is
/// the number of others, which are printed as "?".
struct PdfFile {
  std::string bytes;
  int replaced = 0;
  bool embeds_fonts = false;
};
PdfFile to_pdf(const Picture&);

}  // namespace stagecraft
