#include "sim/report/svg.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr double kLeft = 120, kTop = 44, kRow = 34, kBox = 22, kWidth = 1180, kRight = 20;

// Forward, backward, input gradient, weight gradient, recomputation, update, prediction: told apart without red and
// green too.
constexpr const char* kFill[] = {"#4c78a8", "#f2b447", "#e8913c", "#88bfae", "#b7c9de", "#7d6b91", "#d58fa8"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

class Drawing {
 public:
  Drawing(const Program& program, const Timeline& timeline, const Cluster& cluster)
      : p_(program), t_(timeline), cluster_(cluster) {
    row_.assign(static_cast<std::size_t>(p_.devices), -1);
    std::vector<bool> used(row_.size(), false);
    for (const Instruction& i : p_.instructions)
      if (i.is_compute()) used[static_cast<std::size_t>(i.device)] = true;
    for (std::size_t d = 0; d < used.size(); ++d)
      if (used[d]) row_[d] = rows_++;
    scale_ = t_.last_end().value > 0 ? (kWidth - kLeft - kRight) / t_.last_end().value : 0;
  }

  std::string run(const std::string& title) {
    const double height = kTop + kRow * rows_ + 34;
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="12">)",
        kWidth, height);
    add(R"(<rect width="{}" height="{}" fill="white"/><text x="12" y="20" font-size="15">{}</text>)", kWidth, height,
        escaped(title));
    for (std::size_t d = 0; d < row_.size(); ++d) {
      if (row_[d] < 0) continue;
      add(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft - 8, top(d) + 15,
          escaped(cluster_.devices[d].name));
      add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="#f1f1f1"/>)", kLeft, top(d), kWidth - kLeft - kRight,
          kBox);
    }
    for (std::size_t n = 0; n < p_.size(); ++n)
      if (p_.instructions[n].is_compute())
        box(n);
      else
        message(n);
    axis(height);
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  double x(double seconds) const { return kLeft + seconds * scale_; }
  double top(std::size_t d) const { return kTop + kRow * row_[d]; }

  void box(std::size_t n) {
    const Instruction& i = p_.instructions[n];
    const double from = x(t_.start[n]), width = x(t_.end[n]) - from, y = top(static_cast<std::size_t>(i.device));
    if (width <= 0) return;
    add(R"(<rect x="{:.2f}" y="{}" width="{:.2f}" height="{}" fill="{}" stroke="white" stroke-width="0.6"><title>{}</title></rect>)",
        from, y, width, kBox, kFill[static_cast<std::size_t>(i.kind)],
        to_text(p_, InstructionId{static_cast<std::int64_t>(n)}));
    const bool numbered = i.kind != InstructionKind::Update && i.kind != InstructionKind::Predict;
    const std::string label = numbered ? std::to_string(i.micro) : std::string(1, letter(i.kind));
    if (width > 7.0 * static_cast<double>(label.size()))
      add(R"(<text x="{:.2f}" y="{}" text-anchor="middle" font-size="11" fill="{}">{}</text>)", from + width / 2,
          y + 15, i.kind == InstructionKind::Forward || i.kind == InstructionKind::Update ? "white" : "black", label);
  }

  void message(std::size_t n) {
    const Instruction& i = p_.instructions[n];
    if (i.kind != InstructionKind::Send) return;
    const double y = top(static_cast<std::size_t>(i.device)) + kBox + 3;
    add(R"(<rect x="{:.2f}" y="{}" width="{:.2f}" height="3" fill="{}"><title>{}</title></rect>)", x(t_.start[n]),
        y + (i.gradient ? 4 : 0), std::max(0.5, x(t_.end[n]) - x(t_.start[n])), kFill[i.gradient],
        to_text(p_, InstructionId{static_cast<std::int64_t>(n)}));
  }

  void axis(double height) {
    const double last = t_.last_end().value;
    for (int tick = 0; tick <= 8; ++tick) {
      const double at = last * tick / 8;
      add(R"(<text x="{:.2f}" y="{}" text-anchor="{}" fill="#555">{}</text>)", x(at), height - 12,
          tick == 8 ? "end" : "middle", to_text(Seconds{at}));
    }
  }

  const Program& p_;
  const Timeline& t_;
  const Cluster& cluster_;
  std::vector<int> row_;  ///< Of each device; -1 when nothing runs there.
  int rows_ = 0;
  double scale_ = 0;
  std::string text_;
};

}  // namespace

std::string timeline_svg(const Program& program, const Timeline& timeline, const Cluster& cluster,
                         const std::string& title) {
  return Drawing(program, timeline, cluster).run(title);
}

}  // namespace stagecraft
