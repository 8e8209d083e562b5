#include "sim/published/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;
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

/// Why a figure is missed, or did not run; of others there is nothing to explain.
std::string reason(const PublishedTable& t, const Reproduced& c) {
  return c.verdict == Verdict::Failed ? c.problem : c.verdict == Verdict::Missed ? t.why_of(c.row) : "";
}

std::string ours_text(const PublishedTable& t, const Reproduced& c) {
  if (c.verdict == Verdict::Failed) return "failed";
  return number_text(t, c.ours) + (c.verdict == Verdict::Missed ? " !" : "  ");
}

/// A reason that is not known says so itself.
std::string reason_text(const std::string& why) { return why.starts_with("not known") ? why : "because " + why; }

/// Published and ours of a row, each column as wide as its widest text.
class Grid {
 public:
  Grid(const Reproduction& r, std::size_t table) : t_(r.published.tables[table]) {
    for (const Reproduced& c : r.cells)
      if (c.table == table) cells_.push_back(&c);
    for (const auto& row : t_.rows) first_ = std::max(first_, row.name.size());
    for (const auto& column : t_.columns) widths_.push_back(std::max<std::size_t>(column.name.size() + 2, 8));
    for (const Reproduced* c : cells_)
      widths_[c->column] =
          std::max({widths_[c->column], number_text(t_, c->published).size() + 2, ours_text(t_, *c).size()});
    std::map<std::string, std::set<std::size_t>> rows;
    for (const Reproduced* c : cells_)
      if (bad(*c) && !t_.rows[c->row].why.empty()) rows[t_.rows[c->row].why].insert(c->row);
    for (const auto& row : t_.rows)
      if (rows[row.why].size() > 1 && std::find(shared_.begin(), shared_.end(), row.why) == shared_.end())
        shared_.push_back(row.why);
  }

  std::string text() const {
    std::string text = fmt::format("{}: {} on {}, {}\n  {:<{}}             ", t_.name, t_.figure, t_.backend,
                                   rule_text(t_), "", first_);
    for (std::size_t i = 0; i < widths_.size(); ++i)
      text += fmt::format("{:>{}}", t_.columns[i].name + "  ", widths_[i] + 2);
    text += "\n";
    for (std::size_t row = 0; row < t_.rows.size(); ++row) text += rows(row);
    for (std::size_t i = 0; i < shared_.size(); ++i) text += fmt::format("  {} {}\n", mark(i), reason_text(shared_[i]));
    const bool missed = std::any_of(cells_.begin(), cells_.end(),
                                    [&](const Reproduced* c) { return bad(*c) && t_.rows[c->row].why.empty(); });
    return text + (missed && !t_.why.empty() ? fmt::format("  {}\n", reason_text(t_.why)) : "");
  }

 private:
  static bool bad(const Reproduced& c) { return c.verdict == Verdict::Missed || c.verdict == Verdict::Failed; }
  static std::string mark(std::size_t reason) { return fmt::format("({})", reason + 1); }

  /// A reason of this row alone as a line; of one that several rows have, its mark for the line of ours.
  std::pair<std::string, std::string> reason_of(const std::string& why) const {
    const auto shared = std::find(shared_.begin(), shared_.end(), why);
    if (shared != shared_.end()) return {" " + mark(static_cast<std::size_t>(shared - shared_.begin())), ""};
    return {"", fmt::format("  {:<{}}  {}\n", "", first_, reason_text(why))};
  }

  std::string rows(std::size_t row) const {
    std::string published = fmt::format("  {:<{}}  published  ", t_.rows[row].name, first_);
    std::string ours = fmt::format("  {:<{}}  ours       ", "", first_), why = t_.rows[row].why, problems;
    std::size_t at = 0;
    bool missed = false;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      while (at < cells_.size() && (cells_[at]->row < row || (cells_[at]->row == row && cells_[at]->column < i))) ++at;
      const bool there = at < cells_.size() && cells_[at]->row == row && cells_[at]->column == i;
      published += fmt::format("{:>{}}", there ? number_text(t_, cells_[at]->published) + "  " : "", widths_[i] + 2);
      ours += fmt::format("{:>{}}", there ? ours_text(t_, *cells_[at]) : "", widths_[i] + 2);
      if (!there) continue;
      missed = missed || bad(*cells_[at]);
      if (!cells_[at]->problem.empty()) problems += fmt::format("  {}: {}\n", t_.columns[i].name, cells_[at]->problem);
    }
    auto [mark, reason] = missed && !why.empty() ? reason_of(why) : std::pair<std::string, std::string>();
    if (t_.rows[row].calibrated) reason += fmt::format("  {:<{}}  calibrated on this row\n", "", first_);
    return published + "\n" + ours + mark + "\n" + problems + reason;
  }

  const PublishedTable& t_;
  std::vector<const Reproduced*> cells_;
  std::vector<std::size_t> widths_;
  std::vector<std::string> shared_;  ///< Reasons of several rows, which are written once.
  std::size_t first_ = 3;
};

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
  return t.closeness.decimals ? fmt::format("{:.{}f}", value, *t.closeness.decimals) : fmt::format("{:.4g}", value);
}

std::string rule_text(const PublishedTable& t) {
  const Closeness& c = t.closeness;
  std::vector<std::string> rules;
  if (c.decimals) rules.push_back(fmt::format("to {} decimals", *c.decimals));
  if (c.tolerance) rules.push_back(*c.tolerance < 1e-6 ? "equal" : fmt::format("within {:.3g} %", 100 * *c.tolerance));
  if (c.side) rules.push_back(fmt::format("on the same side of {:.3g}", *c.side));
  if (c.bound != Closeness::Bound::None)
    rules.emplace_back(c.bound == Closeness::Bound::Least ? "at least so much" : "at most so much");
  if (c.order) rules.emplace_back("in the same order");
  return rules.empty() ? "shown, not judged" : fmt::format("{}", fmt::join(rules, ", "));
}

std::string to_text(const Reproduction& r) {
  std::string text = fmt::format("{}: {}\n{}\n", r.published.name, r.published.title, r.published.source);
  for (std::size_t t = 0; t < r.published.tables.size(); ++t) text += "\n" + Grid(r, t).text();
  for (std::size_t i = 0; i < r.published.assumed.size(); ++i)
    text += fmt::format("{}- {}\n", i == 0 ? "\nassumed:\n" : "", r.published.assumed[i]);
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

std::string summary_text(std::span<const Reproduction> all) {
  std::size_t width = 0;
  for (const Reproduction& r : all) width = std::max(width, r.published.name.size());
  std::string text;
  for (const Reproduction& r : all) text += fmt::format("{:<{}}  {}\n", r.published.name, width, counts(r));
  return text;
}

std::string reproduced_csv(std::span<const Reproduction> all) {
  std::string text = "publication,table,row,column,figure,backend,published,ours,deviation,verdict,reason\n";
  for (const Reproduction& r : all)
    for (const Reproduced& c : r.cells) {
      const PublishedTable& t = table_of(r, c);
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", r.published.name, csv_quoted(t.name),
                          csv_quoted(row_name(r, c)), csv_quoted(column_name(r, c)), t.figure, t.backend,
                          shortest(c.published), shortest(c.ours), shortest(c.deviation()), word(c.verdict),
                          csv_quoted(reason(t, c)));
    }
  return text;
}

std::string reproduced_json(std::span<const Reproduction> all) {
  Json json{{"schema", "reproduced/1"}};
  json["publications"] = Json::array();
  for (const Reproduction& r : all) {
    Json one{{"name", r.published.name},
             {"title", r.published.title},
             {"source", r.published.source},
             {"assumed", r.published.assumed},
             {"unexpected", r.unexpected()}};
    one["figures"] = Json::array();
    for (const Reproduced& c : r.cells) {
      const PublishedTable& t = table_of(r, c);
      one["figures"].push_back({{"table", t.name},
                                {"row", row_name(r, c)},
                                {"column", column_name(r, c)},
                                {"figure", t.figure},
                                {"backend", t.backend},
                                {"published", c.published},
                                {"ours", c.verdict == Verdict::Failed ? Json() : Json(c.ours)},
                                {"deviation", c.verdict == Verdict::Failed ? Json() : Json(c.deviation())},
                                {"verdict", word(c.verdict)},
                                {"reason", reason(t, c)}});
    }
    json["publications"].push_back(one);
  }
  return json.dump(2);
}

}  // namespace stagecraft
