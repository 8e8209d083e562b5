// What all pictures share: text that is measured, shortened and wrapped, titles, round ticks, the colors of series, and
// pictures side by side.

#include "sim/output/picture.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/fonts.hpp"

namespace stagecraft {

double text_width(std::string_view text, double size, bool bold) {
  double thousandths = 0;
  for (const unsigned char byte : windows_1252(text).bytes) thousandths += helvetica_width(byte, bold);
  return thousandths * size / 1000;
}

std::string fitted_text(std::string_view text, double size, double width, bool bold) {
  if (text_width(text, size, bold) <= width) return std::string(text);
  constexpr std::string_view kCut = "...";
  // Whole characters: bytes that continue one stay with it.
  const auto starts = [&](std::size_t at) { return at >= text.size() || (text[at] & 0xC0) != 0x80; };
  std::size_t head = text.size() / 2, tail = head;
  for (bool from_head = true; head > 0 || tail < text.size(); from_head = !from_head) {
    if (from_head && head > 0) do
        --head;
      while (!starts(head));
    if (!from_head && tail < text.size()) do
        ++tail;
      while (!starts(tail));
    if (!starts(head) || !starts(tail)) continue;
    const std::string cut = std::string(text.substr(0, head)) + std::string(kCut) + std::string(text.substr(tail));
    if (text_width(cut, size, bold) <= width) return cut;
  }
  return std::string(kCut);
}

std::vector<std::string> wrapped_text(std::string_view text, double size, double width, std::size_t max_lines,
                                      bool bold) {
  std::vector<std::string> lines{""};
  for (const std::string& word : split(std::string(text), ' ')) {
    std::string& line = lines.back();
    const std::string longer = line.empty() ? word : line + " " + word;
    if (line.empty() || lines.size() == max_lines || text_width(longer, size, bold) <= width)
      line = longer;
    else
      lines.push_back(word);
  }
  for (std::string& line : lines) line = fitted_text(line, size, width, bold);
  return lines;
}

double add_title(Picture& picture, double text_size, double top) {
  if (picture.title.empty()) return top;
  constexpr std::size_t kMostTitleLines = 3;
  const double line_size = 1.15 * text_size, left = 0.7 * text_size;
  for (std::string& line : wrapped_text(picture.title, line_size, picture.width - 2 * left, kMostTitleLines, true)) {
    top += 1.3 * text_size;
    picture.items.push_back(Label{{left, top}, std::move(line), line_size, Anchor::Start, "#18202a", true});
  }
  return top;
}

std::vector<double> round_ticks(double low, double high, int max_ticks) {
  if (!(high > low) || max_ticks < 1) return {};
  const double rough = (high - low) / max_ticks, power = std::pow(10, std::floor(std::log10(rough)));
  // A hair of slack, so that rounding neither adds nor drops a tick at an end.
  constexpr double kSlack = 1e-9;
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0}) {
    step = factor * power;
    const double count = std::floor(high / step + kSlack) - std::ceil(low / step - kSlack) + 1;
    if (count <= max_ticks) break;
  }
  std::vector<double> ticks;
  for (double n = std::ceil(low / step - kSlack); n * step <= high + kSlack * step; ++n) ticks.push_back(n * step);
  return ticks;
}

std::string tick_text(double tick, double step) {
  const int decimals = step > 0 ? std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12) : 0;
  return fmt::format("{:.{}f}", std::abs(tick) < 1e-9 * step ? 0.0 : tick, decimals);
}

namespace {

void move_right(PictureItem& item, double distance) {
  if (Box* box = std::get_if<Box>(&item)) box->left += distance;
  if (Mark* mark = std::get_if<Mark>(&item)) mark->center.x += distance;
  if (Label* label = std::get_if<Label>(&item)) label->baseline.x += distance;
  if (Polyline* line = std::get_if<Polyline>(&item))
    for (PicturePoint& p : line->places) p.x += distance;
}

}  // namespace

Picture side_by_side(std::vector<Picture> pictures) {
  Picture result;
  for (Picture& p : pictures) {
    if (result.width == 0) result.title = p.title;
    for (PictureItem& item : p.items) {
      move_right(item, result.width);
      result.items.push_back(std::move(item));
    }
    result.width += p.width;
    result.height = std::max(result.height, p.height);
  }
  return result;
}

const char* series_color(std::size_t n) {
  // Chosen for normal sight, protanopia, deuteranopia and tritanopia: any two differ by CIE76 21 or more.
  constexpr const char* kColors[] = {"#3a78bd", "#c76b1a", "#669265", "#6a3577", "#bf83a4", "#55555d"};
  return kColors[n % std::size(kColors)];
}

}  // namespace stagecraft
