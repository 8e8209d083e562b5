// The page of reproduced results: tables and plots of published figures next to simulated ones.

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/output/html_page.hpp"
#include "sim/published/error_summary.hpp"
#include "sim/published/reproduce.hpp"
#include "sim/published/table.hpp"

namespace stagecraft {
namespace {

using Verdict = Reproduced::Verdict;

constexpr double kSide = 210, kLeft = 56, kTop = 10;
constexpr const char* kRemark =
    "<p class=\"remark\">Each cell has the published figure in gray and the simulated one next to it; missed figures "
    "are "
    "red, with the reason below. In the plots the band is the tolerance of the table.</p>";
constexpr std::size_t kFewest = 4;  // Figures; fewer are read sooner than looked at.

/// The scale of both axes of a plot.
class Scale {
 public:
  explicit Scale(std::span<const Reproduced> cells) {
    for (const Reproduced& c : cells)
      for (const double v : {c.published, c.ours})
        if (c.verdict != Verdict::Failed) low_ = std::min(low_, v), high_ = std::max(high_, v);
    log_ = low_ > 0 && high_ > 30 * low_;
    const double margin = log_ ? 1.15 : 0.05 * (high_ - low_);
    low_ = log_ ? low_ / margin : low_ >= 0 ? std::max(0.0, low_ - margin) : low_ - margin;
    high_ = log_ ? high_ * margin : high_ + margin;
  }

  bool has_extent() const { return low_ < high_; }
  double low() const { return low_; }
  double high() const { return high_; }
  double share(double v) const {
    return log_ ? std::log(v / low_) / std::log(high_ / low_) : (v - low_) / (high_ - low_);
  }

  /// Round numbers: powers of ten, or steps of 1, 2 or 5 times one.
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (log_) {
      for (double t = std::pow(10, std::ceil(std::log10(low_))); t <= high_; t *= 10) ticks.push_back(t);
      if (ticks.size() > 1) return ticks;
      ticks.clear();
    }
    const double fine = (high_ - low_) / 5, ten = std::pow(10, std::floor(std::log10(fine)));
    const double step = fine <= ten ? ten : fine <= 2 * ten ? 2 * ten : fine <= 5 * ten ? 5 * ten : 10 * ten;
    for (double n = std::ceil(low_ / step); n * step <= high_; ++n) ticks.push_back(n * step);
    return ticks;
  }

 private:
  double low_ = kInfinity, high_ = -kInfinity;
  bool log_ = false;
};

double x(const Scale& s, double v) { return kLeft + kSide * s.share(v); }
double y(const Scale& s, double v) { return kTop + kSide * (1 - s.share(v)); }

/// Where ours may lie: `tolerance` times the published figure to both sides.
std::string band(const Scale& s, double tolerance) {
  constexpr double kSeen = 0.005;
  if (tolerance < kSeen || tolerance >= 1 || s.low() < 0) return "";
  std::string points;
  const auto corner = [&](double published, double factor) {
    points += fmt::format("{:.1f},{:.1f} ", x(s, published), y(s, published * factor));
  };
  const double low = s.low() > 0 ? s.low() : 0;
  corner(low, 1 - tolerance), corner(s.high(), 1 - tolerance), corner(s.high(), 1 + tolerance);
  corner(low, 1 + tolerance);
  // A picture of its own cuts off what lies outside.
  return fmt::format(
      "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{2}\" viewBox=\"{0} {1} {2} {2}\"><polygon class=\"band\" "
      "points=\"{3}\"><title>within {4:.3g} %</title></polygon></svg>",
      kLeft, kTop, kSide, points, 100 * tolerance);
}

std::string axes(const Scale& s) {
  std::string text = fmt::format("<path class=\"axis\" d=\"M{0} {1}v{2}h{2}v-{2}zM{0} {3}L{4} {1}\"/>", kLeft, kTop,
                                 kSide, kTop + kSide, kLeft + kSide);
  for (const double t : s.ticks())
    text += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.4g}</text>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>",
        x(s, t), kTop + kSide + 16, t, kLeft - 6, y(s, t) + 4, t);
  text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">published</text>", kLeft + kSide / 2,
                      kTop + kSide + 34);
  return text + fmt::format("<text transform=\"translate(12 {:.1f}) rotate(-90)\" text-anchor=\"middle\">ours</text>",
                            kTop + kSide / 2);
}

/// Ours over the published figures of one table as SVG; what agrees lies on the diagonal. Logarithmic when they span
/// more than a factor of 30. Nothing when there are too few figures for a picture.
std::string plot_svg(const PublishedTable& t, std::span<const Reproduced> cells) {
  const Scale scale(cells);
  if (cells.size() < kFewest || !scale.has_extent()) return "";
  std::string text = fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\"><title>ours over published</title>{2}",
      kLeft + kSide + 14, kTop + kSide + 42, band(scale, t.match_rule.tolerance.value_or(0)) + axes(scale));
  for (const Reproduced& c : cells) {
    if (c.verdict == Verdict::Failed) continue;
    text += fmt::format(
        "<circle class=\"point{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}, {}: published {:.4g}, ours "
        "{:.4g}</title></circle>",
        c.verdict == Verdict::Missed ? " off" : "", x(scale, c.published), y(scale, c.ours),
        xml_escape(t.rows[c.row].name), xml_escape(t.columns[c.column].name), c.published, c.ours);
  }
  return text + "</svg>";
}

bool bad(const Reproduced& c) { return c.verdict == Verdict::Missed || c.verdict == Verdict::Failed; }

std::string cell_html(const PublishedTable& t, const Reproduced& c) {
  const bool failed = c.verdict == Verdict::Failed;
  const std::string note = failed ? c.problem : fmt::format("{:+.2f} %", 100 * c.deviation());
  return fmt::format("<td{} title=\"{}\"><span class=\"published\">{}</span>{}</td>", bad(c) ? " class=\"missed\"" : "",
                     xml_escape(note), number_text(t, c.published), failed ? "failed" : number_text(t, c.ours));
}

std::string grid_html(const PublishedTable& t, std::span<const Reproduced> cells) {
  std::string text = "<table><thead><tr><td></td>";
  for (const auto& column : t.columns) text += fmt::format("<th scope=\"col\">{}</th>", xml_escape(column.name));
  text += "</tr></thead>";
  std::size_t at = 0;
  for (std::size_t row = 0; row < t.rows.size(); ++row) {
    text += fmt::format("<tr><th scope=\"row\">{}{}</th>", xml_escape(t.rows[row].name),
                        t.rows[row].calibrated ? " <span class=\"published\">(calibrated)</span>" : "");
    for (std::size_t column = 0; column < t.columns.size(); ++column) {
      const bool there = at < cells.size() && cells[at].row == row && cells[at].column == column;
      text += there ? cell_html(t, cells[at]) : "<td></td>";
      at += there;
    }
    text += "</tr>";
  }
  return text + "</table>";
}

/// Each reason once, with the rows that it is for unless it is for all that are missed.
std::string reasons_html(const PublishedTable& t, std::span<const Reproduced> cells) {
  std::vector<std::pair<std::string, std::set<std::size_t>>> reasons;
  for (const Reproduced& c : cells) {
    const std::string& why = t.why_of(c.row);
    if (!bad(c) || why.empty()) continue;
    auto it = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == why; });
    if (it == reasons.end()) it = reasons.insert(reasons.end(), {why, {}});
    it->second.insert(c.row);
  }
  std::string text;
  for (const auto& reason : reasons) {
    std::vector<std::string> rows;
    for (const std::size_t row : reason.second) rows.push_back(t.rows[row].name);
    const std::string whose = reasons.size() == 1 ? "Missed" : join(rows, "; ");
    text += fmt::format("<p class=\"why\"><span class=\"missed\">{}</span>: {}.</p>", xml_escape(whose),
                        xml_escape(reason.first));
  }
  return text;
}

std::string table_html(const PublishedTable& t, std::span<const Reproduced> cells) {
  return fmt::format("<h3>{}</h3><p class=\"remark\">{} on {}; {}.</p><div class=\"pair\">{}{}</div>{}",
                     xml_escape(t.name), t.figure, t.backend, rule_text(t), grid_html(t, cells), plot_svg(t, cells),
                     reasons_html(t, cells));
}

/// The verdicts on each publication's figures, counted; verdicts without a figure have no column.
std::string summary_html(std::span<const Reproduction> reproductions) {
  constexpr std::pair<Verdict, const char*> kColumns[] = {
      {Verdict::Met, "met"}, {Verdict::Missed, "missed"}, {Verdict::Failed, "failed"}, {Verdict::Shown, "shown only"}};
  const auto total = [&](Verdict v) {
    int sum = 0;
    for (const Reproduction& r : reproductions) sum += r.count(v);
    return sum;
  };
  std::string head, rows, foot;
  for (const auto& [verdict, word] : kColumns)
    if (total(verdict) > 0) {
      head += fmt::format("<th scope=\"col\">{}</th>", word);
      foot += fmt::format("<td><b>{}</b></td>", total(verdict));
    }
  for (const Reproduction& r : reproductions) {
    rows += fmt::format("<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th>", xml_escape(r.published.name),
                        xml_escape(r.published.title));
    for (const auto& column : kColumns) {
      if (total(column.first) == 0) continue;
      const int count = r.count(column.first);
      rows += count > 0 ? fmt::format("<td>{}</td>", count) : "<td></td>";
    }
    rows += "</tr>";
  }
  return fmt::format("<table><thead><tr><td></td>{}</tr></thead>{}<tr><th scope=\"row\">all</th>{}</tr></table>", head,
                     rows, foot);
}

std::string publication_html(const Reproduction& r) {
  std::string text = fmt::format("<h2 id=\"{}\">{}</h2><p class=\"remark\">{}</p>", xml_escape(r.published.name),
                                 xml_escape(r.published.title), xml_escape(r.published.source));
  std::size_t first = 0;
  for (std::size_t t = 0; t < r.published.tables.size(); ++t) {
    std::size_t last = first;
    while (last < r.cells.size() && r.cells[last].table == t) ++last;
    text += table_html(r.published.tables[t], std::span(r.cells).subspan(first, last - first));
    first = last;
  }
  if (r.published.assumed.empty()) return text;
  text += "<h3>Assumed</h3><ul>";
  for (const std::string& sentence : r.published.assumed) text += fmt::format("<li>{}</li>", xml_escape(sentence));
  return text + "</ul>";
}

}  // namespace

std::string reproduced_html(std::span<const Reproduction> reproductions) {
  std::string content = kRemark + error_summary_html(reproductions) + summary_html(reproductions);
  for (const Reproduction& r : reproductions) content += publication_html(r);
  return html_content_page(html::reproduced, "Published and simulated figures", content);
}

}  // namespace stagecraft
