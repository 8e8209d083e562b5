// Reproduced results as text, CSV and JSON, with published figures above ours.

#include "sim/published/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/output/table.hpp"

namespace stagecraft {
namespace {

using Verdict = Reproduced::Verdict;

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::Met:
      return "met";
    case Verdict::Missed:
      return "missed";
    case Verdict::Shown:
      return "shown";
    case Verdict::Failed:
      return "failed";
  }
  return "";
}

const PublishedTable& table_of(const Reproduction& r, const Reproduced& cell) { return r.published.tables[cell.table]; }
const std::string& row_name(const Reproduction& r, const Reproduced& c) { return table_of(r, c).rows[c.row].name; }
const std::string& column_name(const Reproduction& r, const Reproduced& c) {
  return table_of(r, c).columns[c.column].name;
}

/// Why a figure is missed or did not run; empty for all others.
std::string reason(const PublishedTable& t, const Reproduced& c) {
  return c.verdict == Verdict::Failed ? c.problem : c.verdict == Verdict::Missed ? t.why_of(c.row) : "";
}

std::string ours_text(const PublishedTable& t, const Reproduced& c) {
  if (c.verdict == Verdict::Failed) return "failed";
  return number_text(t, c.ours) + (c.verdict == Verdict::Missed ? " !" : "  ");
}

/// An unknown reason already says that it is not known.
std::string reason_text(const std::string& why) { return why.starts_with("not known") ? why : "because " + why; }

/// The figures of one table: for each row a line of published ones and one of ours.
class PublishedGrid {
 public:
  PublishedGrid(const Reproduction& r, std::size_t table) : t_(r.published.tables[table]) {
    for (const Reproduced& c : r.cells)
      if (c.table == table) cells_.push_back(&c);
    for (const auto& row : t_.rows) first_ = std::max(first_, static_cast<int>(row.name.size()));
    std::map<std::string, std::set<std::size_t>> rows;
    for (const Reproduced* c : cells_)
      if (bad(*c) && !t_.rows[c->row].why.empty()) rows[t_.rows[c->row].why].insert(c->row);
    for (const auto& row : t_.rows)
      if (rows[row.why].size() > 1 && std::find(shared_.begin(), shared_.end(), row.why) == shared_.end())
        shared_.push_back(row.why);
  }

  std::string text(const TextLayout& layout) const {
    Table table;
    table.columns = {{.heading = " ", .width = first_, .align = TextAlign::Left},
                     {.heading = " ", .width = 11, .align = TextAlign::Left}};
    for (const auto& column : t_.columns) {
      const int width = std::max(static_cast<int>(column.name.size()) + 2, 8);
      table.columns.push_back({.heading = column.name + "  ", .width = width, .widens = true});
    }
    for (std::size_t row = 0; row < t_.rows.size(); ++row) add_rows(table, row);
    std::string text =
        wrap_lines(fmt::format("{}: {} on {}, {}\n", t_.name, t_.figure, t_.backend, rule_text(t_)), layout.width);
    for (const Table& part : split_columns(table, 2, layout)) text += to_text(part, layout);
    for (std::size_t i = 0; i < shared_.size(); ++i)
      text += wrap_lines(fmt::format("  {} {}\n", mark(i), reason_text(shared_[i])), layout.width);
    const bool missed = std::any_of(cells_.begin(), cells_.end(),
                                    [&](const Reproduced* c) { return bad(*c) && t_.rows[c->row].why.empty(); });
    const std::string why = missed && !t_.why.empty() ? fmt::format("  {}\n", reason_text(t_.why)) : "";
    return text + wrap_lines(why, layout.width);
  }

 private:
  static bool bad(const Reproduced& c) { return c.verdict == Verdict::Missed || c.verdict == Verdict::Failed; }
  static std::string mark(std::size_t reason) { return fmt::format("({})", reason + 1); }

  const Reproduced* cell(std::size_t row, std::size_t column) const {
    for (const Reproduced* c : cells_)
      if (c->row == row && c->column == column) return c;
    return nullptr;
  }

  /// What follows the figures of ours in a row: the mark of a reason that several rows have, or lines with problems and
  /// the reason of this row alone.
  std::string remarks(std::size_t row) const {
    std::string mark_text, lines;
    bool missed = false;
    for (const Reproduced* c : cells_) {
      if (c->row != row) continue;
      missed = missed || bad(*c);
      if (!c->problem.empty()) lines += fmt::format("\n  {}: {}", t_.columns[c->column].name, c->problem);
    }
    const std::string& why = t_.rows[row].why;
    const auto shared = std::find(shared_.begin(), shared_.end(), why);
    if (missed && shared != shared_.end())
      mark_text = " " + mark(shared - shared_.begin());
    else if (missed && !why.empty())
      lines += fmt::format("\n  {:<{}}  {}", "", first_, reason_text(why));
    if (t_.rows[row].calibrated) lines += fmt::format("\n  {:<{}}  calibrated on this row", "", first_);
    return mark_text + lines;
  }

  void add_rows(Table& table, std::size_t row) const {
    TableRow published{{t_.rows[row].name, "published"}}, ours{{"", "ours"}, {}, remarks(row)};
    for (std::size_t column = 0; column < t_.columns.size(); ++column) {
      const Reproduced* c = cell(row, column);
      published.cells.emplace_back(c ? number_text(t_, c->published) + "  " : "");
      ours.cells.emplace_back(c ? ours_text(t_, *c) : "");
    }
    table.rows.push_back(std::move(published));
    table.rows.push_back(std::move(ours));
  }

  const PublishedTable& t_;
  std::vector<const Reproduced*> cells_;
  std::vector<std::string> shared_;  ///< Reasons that several rows have; each is written once.
  int first_ = 3;                    ///< Width of the names of rows.
};

/// A column of reproduced figures.
FileColumn figure_column(std::string_view name) {
  static const std::vector<FileColumn> columns{
      word_column("publication", "Name of the publication, as stagecraft list published has it."),
      word_column("table", "Table of the publication."),
      word_column("row", "Row of the table."),
      word_column("column", "Column of the table."),
      word_column("figure", "The metric that is compared."),
      word_column("backend", "Backend that simulates or runs it."),
      number_column("published", "", "The published figure, in the unit of its table."),
      or_null(
          number_column("ours", "", "The reproduced figure in the same unit; did not run: 0 in CSV, null in JSON.")),
      or_null(number_column("deviation", "",
                            "ours / published - 1; where 0 is published, ours. Did not run: null in JSON.")),
      word_column("verdict", "met, missed, shown (not judged) or failed (it did not run)."),
      word_column("reason", "Why it is missed or did not run; empty for all others."),
  };
  for (const FileColumn& c : columns)
    if (c.name() == name) return c;
  throw InternalError(fmt::format("no column '{}'", name));
}

/// Every figure as a row of files.
Table figures_table(const Reproduction& r) {
  using Row = Reproduced;
  const auto table = [&](const Row& c) -> const PublishedTable& { return table_of(r, c); };
  const auto unless_failed = [](const Row& c, double number) {
    return c.verdict == Verdict::Failed ? Json() : Json(number);
  };
  return make_table<Row>(
      {
          {{.key = figure_column("publication"), .files = InFiles::Csv}, [&](const Row&) { return r.published.name; }},
          {{.key = figure_column("table"), .quoted = true}, [&](const Row& c) { return table(c).name; }},
          {{.key = figure_column("row"), .quoted = true}, [&](const Row& c) { return row_name(r, c); }},
          {{.key = figure_column("column"), .quoted = true}, [&](const Row& c) { return column_name(r, c); }},
          {{.key = figure_column("figure")}, [&](const Row& c) { return table(c).figure; }},
          {{.key = figure_column("backend")}, [&](const Row& c) { return table(c).backend; }},
          {{.key = figure_column("published")}, &Row::published},
          {{.key = figure_column("ours"), .files = InFiles::Csv}, &Row::ours},
          {{.key = figure_column("ours"), .files = InFiles::Json},
           [&](const Row& c) { return unless_failed(c, c.ours); }},
          {{.key = figure_column("deviation"), .files = InFiles::Csv}, &Row::deviation},
          {{.key = figure_column("deviation"), .files = InFiles::Json},
           [&](const Row& c) { return unless_failed(c, c.deviation()); }},
          {{.key = figure_column("verdict")}, [](const Row& c) { return word(c.verdict); }},
          {{.key = figure_column("reason"), .quoted = true}, [&](const Row& c) { return reason(table(c), c); }},
      },
      r.cells);
}

std::string counts(const Reproduction& r) {
  const int met = r.count(Verdict::Met), missed = r.count(Verdict::Missed), shown = r.count(Verdict::Shown),
            failed = r.count(Verdict::Failed);
  std::string text = fmt::format("{} of {} met", met, met + missed + failed);
  if (shown > 0) text += fmt::format(", {} shown", shown);
  if (failed > 0) text += fmt::format(", {} failed", failed);
  if (r.unexpected() > 0) text += fmt::format(", {} not as the file says", r.unexpected());
  return text;
}

}  // namespace

std::string number_text(const PublishedTable& t, double value) {
  return t.match_rule.decimals ? fmt::format("{:.{}f}", value, *t.match_rule.decimals) : fmt::format("{:.4g}", value);
}

std::string rule_text(const PublishedTable& t) {
  const MatchRule& c = t.match_rule;
  std::vector<std::string> rules;
  if (c.decimals) rules.push_back(fmt::format("to {} decimals", *c.decimals));
  if (c.tolerance) rules.push_back(*c.tolerance < 1e-6 ? "equal" : fmt::format("within {:.3g} %", 100 * *c.tolerance));
  if (c.side) rules.push_back(fmt::format("on the same side of {:.3g}", *c.side));
  if (c.bound != MatchRule::Bound::None)
    rules.emplace_back(c.bound == MatchRule::Bound::AtLeast ? "at least so much" : "at most so much");
  if (c.order) rules.emplace_back("in the same order");
  return rules.empty() ? "shown, not judged" : join(rules, ", ");
}

std::string to_text(const Reproduction& r, const TextLayout& layout) {
  std::string text =
      wrap_lines(fmt::format("{}: {}\n{}\n", r.published.name, r.published.title, r.published.source), layout.width);
  for (std::size_t t = 0; t < r.published.tables.size(); ++t) text += "\n" + PublishedGrid(r, t).text(layout);
  for (std::size_t i = 0; i < r.published.assumed.size(); ++i)
    text += wrap_lines(fmt::format("{}- {}\n", i == 0 ? "\nassumed:\n" : "", r.published.assumed[i]), layout.width);
  return text + "\n" + counts(r) + "\n";
}

std::string unexpected_text(const Reproduction& r) {
  std::string text;
  for (const Reproduced& c : r.cells)
    if (const std::string what = r.unexpected(c); !what.empty())
      text += fmt::format("{}: {}: {}, {}: {}\n", r.published.name, table_of(r, c).name, row_name(r, c),
                          column_name(r, c), what);
  return text;
}

namespace {

/// Judged figures of one kind of claim.
struct ClaimCount {
  int met = 0, judged = 0;
  std::vector<double> deviations;  ///< Without signs.
};

std::string claims_text(std::span<const Reproduction> reproductions) {
  std::map<Claim, ClaimCount> claims;
  for (const Reproduction& r : reproductions)
    for (const Reproduced& c : r.cells) {
      if (c.verdict == Verdict::Shown) continue;
      ClaimCount& count = claims[claim_of(table_of(r, c).match_rule)];
      ++count.judged;
      count.met += c.verdict == Verdict::Met;
      if (c.verdict != Verdict::Failed) count.deviations.push_back(std::abs(c.deviation()));
    }
  std::string text;
  const auto line = [&](Claim claim, const char* name, const char* what) {
    const ClaimCount& count = claims[claim];
    if (count.judged == 0) return;
    text += fmt::format("{:<22}{:>4} of {:<4} met", name, count.met, count.judged);
    if (claim == Claim::Prediction && !count.deviations.empty())
      text += fmt::format(", median deviation {:.1f} %", 100 * median(count.deviations));
    text += fmt::format(": {}\n", what);
  };
  line(Claim::Identity, "identities", "closed forms, counts and memory by definition, exactly");
  line(Claim::Direction, "bounds and directions", "which is faster, and what nothing exceeds");
  line(Claim::Prediction, "predictions", "figures that were measured or simulated by others, within a tolerance");
  return text;
}

}  // namespace

Claim claim_of(const MatchRule& rule) {
  constexpr double kExact = 1e-6;
  if (rule.decimals || (rule.tolerance && *rule.tolerance < kExact)) return Claim::Identity;
  return rule.tolerance ? Claim::Prediction : Claim::Direction;
}

std::string summary_text(std::span<const Reproduction> reproductions) {
  std::size_t width = 0;
  for (const Reproduction& r : reproductions) width = std::max(width, r.published.name.size());
  std::string text;
  for (const Reproduction& r : reproductions) text += fmt::format("{:<{}}  {}\n", r.published.name, width, counts(r));
  return text + "\n" + claims_text(reproductions) +
         "Predictions of measured iterations from shapes: stagecraft reproduce predictions\n";
}

Table figures_of(std::span<const Reproduction> reproductions) {
  Table table = figures_table({});
  for (const Reproduction& r : reproductions)
    for (TableRow& row : figures_table(r).rows) table.rows.push_back(std::move(row));
  return table;
}

std::string reproduced_csv(std::span<const Reproduction> reproductions) { return to_csv(figures_of(reproductions)); }

std::vector<FileColumn> reproduced_columns() { return csv_columns(figures_table({})); }

const config::MapSpec& reproduced_fields() {
  using namespace config;
  static const MapSpec row = json_row(figures_table({}), "A published figure and its reproduction.");
  static const MapSpec publication{
      .title = "A publication.",
      .fields = {text("name").doc("Its name, as stagecraft list published has it."), text("title").doc("Its title."),
                 text("source").doc("Where it was published."),
                 list("assumed", text("assumption")).doc("What is assumed, because it is not published or modeled."),
                 integer("unexpected", 0, kInfinity).doc("Figures that come out otherwise than its file says."),
                 list("figures", map("figure", row)).positional().doc("Its figures.")}};
  static const MapSpec spec{
      .title = "What `stagecraft reproduce --format json` prints.",
      .fields = {choice("schema", {"reproduced/1"}).doc("Version of this format."),
                 list("publications", map("publication", publication)).positional().doc("The publications.")}};
  return spec;
}

std::string reproduced_json(std::span<const Reproduction> reproductions) {
  JsonArray publications;
  for (const Reproduction& r : reproductions)
    publications.push_back(JsonObject{{"name", r.published.name},
                                      {"title", r.published.title},
                                      {"source", r.published.source},
                                      {"assumed", r.published.assumed},
                                      {"unexpected", r.unexpected()},
                                      {"figures", to_json(figures_table(r))}});
  return Json(JsonObject{{"schema", "reproduced/1"}, {"publications", std::move(publications)}}).dump(2);
}

}  // namespace stagecraft
