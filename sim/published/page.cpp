#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/core/escape.hpp"
#include "sim/published/plot.hpp"
#include "sim/published/table.hpp"

namespace stagecraft {
namespace {

using Verdict = Reproduced::Verdict;

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #222; --soft: #6a6a6a; --paper: #fff; --line: #ddd; --ours: #2f6db3; --bad: #b3372f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --soft: #9a9a9a; --paper: #181a1b; --line: #3a3d3f; --ours: #7fb2e5; --bad: #ef8a80; }
}
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 66em;
  margin: 2em auto; padding: 0 1em; }
a { color: var(--ours); }
h2 { margin: 2.2em 0 .2em; padding-top: .6em; border-top: 1px solid var(--line); }
h3 { margin: 1.8em 0 0; font-size: 1.02em; }
.soft { color: var(--soft); margin: .1em 0 .6em; }
.pair { display: flex; flex-wrap: wrap; gap: 1em 3em; align-items: flex-start; overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13.5px; }
th, td { text-align: right; padding: 2px 0 2px 18px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; font-weight: normal; }
thead th { font-weight: 600; }
.published { color: var(--soft); font-weight: normal; padding-right: .5em; }
.missed { color: var(--bad); font-weight: 600; }
.why { max-width: 46em; margin: .7em 0 0; font-size: 14px; }
svg text { fill: var(--soft); font-size: 11px; }
svg .axis { stroke: var(--line); fill: none; }
svg .band { fill: var(--line); fill-opacity: .45; }
svg .point { fill: var(--ours); fill-opacity: .75; }
svg .off { fill: var(--bad); }
)";

bool bad(const Reproduced& c) { return c.verdict == Verdict::Missed || c.verdict == Verdict::Failed; }

std::string cell_html(const PublishedTable& t, const Reproduced& c) {
  const bool failed = c.verdict == Verdict::Failed;
  const std::string note = failed ? c.problem : fmt::format("{:+.2f} %", 100 * c.deviation());
  return fmt::format("<td{} title=\"{}\"><span class=\"published\">{}</span>{}</td>", bad(c) ? " class=\"missed\"" : "",
                     xml_escape(note), number_text(t, c.published), failed ? "failed" : number_text(t, c.ours));
}

std::string grid_html(const PublishedTable& t, std::span<const Reproduced> cells) {
  std::string text = "<table><thead><tr><th></th>";
  for (const auto& column : t.columns) text += fmt::format("<th>{}</th>", xml_escape(column.name));
  text += "</tr></thead>";
  std::size_t at = 0;
  for (std::size_t row = 0; row < t.rows.size(); ++row) {
    text += fmt::format("<tr><th>{}{}</th>", xml_escape(t.rows[row].name),
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
    auto known = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == why; });
    if (known == reasons.end()) known = reasons.insert(reasons.end(), {why, {}});
    known->second.insert(c.row);
  }
  std::string text;
  for (const auto& reason : reasons) {
    std::vector<std::string> rows;
    for (const std::size_t row : reason.second) rows.push_back(t.rows[row].name);
    const std::string whose = reasons.size() == 1 ? "Missed" : fmt::format("{}", fmt::join(rows, "; "));
    text += fmt::format("<p class=\"why\"><span class=\"missed\">{}</span>: {}.</p>", xml_escape(whose),
                        xml_escape(reason.first));
  }
  return text;
}

std::string table_html(const PublishedTable& t, std::span<const Reproduced> cells) {
  return fmt::format("<h3>{}</h3><p class=\"soft\">{} on {}; {}.</p><div class=\"pair\">{}{}</div>{}",
                     xml_escape(t.name), t.figure, t.backend, rule_text(t), grid_html(t, cells), plot_svg(t, cells),
                     reasons_html(t, cells));
}

/// The verdicts on each publication's figures, counted; verdicts without a figure have no column.
std::string summary_html(std::span<const Reproduction> all) {
  constexpr std::pair<Verdict, const char*> kColumns[] = {
      {Verdict::Met, "met"}, {Verdict::Missed, "missed"}, {Verdict::Failed, "failed"}, {Verdict::Shown, "shown only"}};
  const auto total = [&](Verdict v) {
    int sum = 0;
    for (const Reproduction& r : all) sum += r.count(v);
    return sum;
  };
  std::string head, rows, foot;
  for (const auto& [verdict, word] : kColumns)
    if (total(verdict) > 0) {
      head += fmt::format("<th>{}</th>", word);
      foot += fmt::format("<th>{}</th>", total(verdict));
    }
  for (const Reproduction& r : all) {
    rows +=
        fmt::format("<tr><th><a href=\"#{}\">{}</a></th>", xml_escape(r.published.name), xml_escape(r.published.title));
    for (const auto& column : kColumns) {
      if (total(column.first) == 0) continue;
      const int count = r.count(column.first);
      rows += count > 0 ? fmt::format("<td>{}</td>", count) : "<td></td>";
    }
    rows += "</tr>";
  }
  return fmt::format("<table><thead><tr><th></th>{}</tr></thead>{}<tr><th>all</th>{}</tr></table>", head, rows, foot);
}

std::string publication_html(const Reproduction& r) {
  std::string text = fmt::format("<h2 id=\"{}\">{}</h2><p class=\"soft\">{}</p>", xml_escape(r.published.name),
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

std::string reproduced_html(std::span<const Reproduction> all) {
  std::string text = fmt::format(
      "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>Published and ours</title><style>{}</style></head>"
      "<body><h1>Published and ours</h1><p class=\"soft\">In each cell the published figure in grey and ours beside "
      "it; "
      "what is missed in red, with the reason below. In the plots the band is how far ours may be.</p>{}",
      kStyle, summary_html(all));
  for (const Reproduction& r : all) text += publication_html(r);
  return text + "</body></html>\n";
}

}  // namespace stagecraft
