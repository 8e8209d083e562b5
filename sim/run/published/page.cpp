#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "sim/run/published/table.hpp"

namespace stagecraft {
namespace {

using Verdict = Reproduced::Verdict;

constexpr double kSide = 300, kLeft = 62, kTop = 14;

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #222; --soft: #777; --paper: #fff; --line: #ccc; --ours: #2f6db3; --bad: #b3372f; }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --soft: #999; --paper: #181a1b; --line: #444; --ours: #7fb2e5; --bad: #ef8a80; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { text-align: right; padding: 1px 9px; border-bottom: 1px solid var(--line); }
th:first-child { text-align: left; }
.pair { display: flex; flex-wrap: wrap; gap: 2em; align-items: flex-start; overflow-x: auto; }
.published { color: var(--soft); }
.missed { color: var(--bad); font-weight: 600; }
.why { text-align: left; color: var(--soft); font-style: italic; }
svg text { fill: var(--ink); font-size: 11px; }
svg .axis { stroke: var(--line); fill: none; }
svg .point { fill: var(--ours); fill-opacity: .75; }
svg .off { fill: var(--bad); }
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char ch : text)
    out += ch == '<' ? "&lt;" : ch == '>' ? "&gt;" : ch == '&' ? "&amp;" : ch == '"' ? "&quot;" : std::string(1, ch);
  return out;
}

bool bad(const Reproduced& c) { return c.verdict == Verdict::Missed || c.verdict == Verdict::Failed; }

/// Ours over published; what agrees lies on the diagonal. Logarithmic when the figures span more than a factor of 30.
class Plot {
 public:
  explicit Plot(const std::vector<const Reproduced*>& cells) : cells_(cells) {
    for (const Reproduced* c : cells_)
      for (const double v : {c->published, c->ours})
        if (c->verdict != Verdict::Failed) low_ = std::min(low_, v), high_ = std::max(high_, v);
    if (!(low_ <= high_)) return;
    log_ = low_ > 0 && high_ > 30 * low_;
    const double margin = log_ ? 1.1 : 0.04 * (high_ - low_) + 1e-12 * std::abs(high_);
    low_ = log_ ? low_ / margin : low_ - margin;
    high_ = log_ ? high_ * margin : high_ + margin;
    if (low_ == high_) low_ -= 1, high_ += 1;
  }

  std::string svg(const Reproduction& r) const {
    if (!(low_ <= high_)) return "";
    std::string text = fmt::format(
        "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\"><title>ours over published</title>"
        "<path class=\"axis\" d=\"M{2} {3}v{4}h{4}v-{4}zM{2} {5}L{6} {3}\"/>",
        kLeft + kSide + 12, kTop + kSide + 44, kLeft, kTop, kSide, kTop + kSide, kLeft + kSide);
    for (int i = 0; i <= 4; ++i) {
      const double share = i / 4.0;
      const double v = log_ ? low_ * std::pow(high_ / low_, share) : low_ + (high_ - low_) * share;
      text += fmt::format(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.3g}</text>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>",
          x(v), kTop + kSide + 16, v, kLeft - 6, y(v) + 4, v);
    }
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">published</text>", kLeft + kSide / 2,
                        kTop + kSide + 36);
    text += fmt::format("<text transform=\"translate(12 {:.1f}) rotate(-90)\" text-anchor=\"middle\">ours</text>",
                        kTop + kSide / 2);
    for (const Reproduced* c : cells_) {
      if (c->verdict == Verdict::Failed) continue;
      const PublishedTable& t = r.published.tables[c->table];
      text += fmt::format(
          "<circle class=\"point{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}, {}: published {:.4g}, ours "
          "{:.4g}</title></circle>",
          bad(*c) ? " off" : "", x(c->published), y(c->ours), escaped(t.rows[c->row].name),
          escaped(t.columns[c->column].name), c->published, c->ours);
    }
    return text + "</svg>";
  }

 private:
  double share(double v) const {
    return log_ ? std::log(v / low_) / std::log(high_ / low_) : (v - low_) / (high_ - low_);
  }
  double x(double v) const { return kLeft + kSide * share(v); }
  double y(double v) const { return kTop + kSide * (1 - share(v)); }

  const std::vector<const Reproduced*>& cells_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -std::numeric_limits<double>::infinity();
  bool log_ = false;
};

std::string cell_text(const PublishedTable& t, const Reproduced& c) {
  const auto number = [&](double v) {
    return t.closeness.decimals ? fmt::format("{:.{}f}", v, *t.closeness.decimals) : fmt::format("{:.4g}", v);
  };
  const std::string ours = c.verdict == Verdict::Failed ? "failed" : number(c.ours);
  return fmt::format("<td{}><span class=\"published\">{}</span> {}</td>", bad(c) ? " class=\"missed\"" : "",
                     number(c.published), ours);
}

std::string table_html(const Reproduction& r, std::size_t table) {
  const PublishedTable& t = r.published.tables[table];
  std::vector<const Reproduced*> cells;
  for (const Reproduced& c : r.cells)
    if (c.table == table) cells.push_back(&c);
  std::string text =
      fmt::format("<h3>{}</h3><p>{}, on {}; published figures in grey.</p><div class=\"pair\"><table><tr><th></th>",
                  escaped(t.name), t.figure, t.backend);
  for (const auto& column : t.columns) text += fmt::format("<th>{}</th>", escaped(column.name));
  text += "</tr>";
  for (std::size_t row = 0; row < t.rows.size(); ++row) {
    text += fmt::format("<tr><th>{}</th>", escaped(t.rows[row].name));
    std::size_t column = 0;
    bool missed = false;
    for (const Reproduced* c : cells) {
      if (c->row != row) continue;
      for (; column < c->column; ++column) text += "<td></td>";
      text += cell_text(t, *c);
      missed = missed || bad(*c);
      ++column;
    }
    text += "</tr>";
    if (missed && !t.rows[row].why.empty())
      text += fmt::format("<tr><td></td><td class=\"why\" colspan=\"{}\">{}</td></tr>", t.columns.size(),
                          escaped(t.rows[row].why));
  }
  return text + "</table>" + Plot(cells).svg(r) + "</div>";
}

}  // namespace

std::string reproduced_html(std::span<const Reproduction> all) {
  std::string text = fmt::format(
      "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>Published and ours</title><style>{}</style></head>"
      "<body><h1>Published and ours</h1><pre>{}</pre>",
      kStyle, escaped(summary_text(all)));
  for (const Reproduction& r : all) {
    text += fmt::format("<h2>{}</h2><p>{}</p>", escaped(r.published.title), escaped(r.published.source));
    for (std::size_t t = 0; t < r.published.tables.size(); ++t) text += table_html(r, t);
    if (r.published.assumed.empty()) continue;
    text += "<p>Assumed:</p><ul>";
    for (const std::string& sentence : r.published.assumed) text += fmt::format("<li>{}</li>", escaped(sentence));
    text += "</ul>";
  }
  return text + "</body></html>\n";
}

}  // namespace stagecraft
