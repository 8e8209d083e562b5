// Runs the scenarios of published results, each setting once, and judges every figure; for `stagecraft reproduce`.

#include "sim/published/reproduce.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/published/named_figures.hpp"

namespace stagecraft {
namespace {

using Verdict = Reproduced::Verdict;

constexpr double kSameDeviation = 0.1;  // Per cent; files have one decimal.

/// Later settings go on top of earlier ones.
Setting together(std::initializer_list<const Setting*> settings) {
  Setting merged;
  for (const Setting* s : settings) {
    if (!s->scenario.empty()) merged.scenario = s->scenario;
    merged.set.insert(merged.set.end(), s->set.begin(), s->set.end());
  }
  return merged;
}

std::string label(const Setting& setting) {
  std::string text = setting.scenario;
  for (const config::Member& m : setting.set) text += fmt::format(" {}={}", m.key, config::to_json(m.value));
  return text;
}

Scenario scenario_of(const Setting& setting) {
  config::Problems problems;
  config::Value tree = scenario_tree(setting.scenario, problems);
  problems.throw_if_any();
  tree = checked_scenario(std::move(tree), setting.set, problems);
  problems.throw_if_any();
  return settled_scenario(std::move(tree));
}

double measured(const CompiledExperiment& compiled, const std::string& backend, const NamedFigure& figure) {
  Outcome outcome;  // Losses and weights are the same on one thread, and threads have to wait for each other.
  outcome.timeline = execute(compiled, backend, true);
  if (!outcome.timeline.elsewhere) outcome.report = measure(compiled.program, outcome.timeline, compiled.cluster());
  return figure.value_of(compiled, outcome);
}

/// Runs settings once each, however many cells need them.
class SettingRuns {
 public:
  explicit SettingRuns(const PublishedTable& table) : table_(table), figure_(named_figure(table.figure)) {}

  /// The best of the alternatives that can run; what stopped the last one when none can.
  double best(const Setting& setting) {
    if (table_.best_of.empty()) return once(setting);
    std::optional<double> best;
    std::exception_ptr problem;
    for (const Setting& alternative : table_.best_of) {
      try {
        const double value = once(together({&setting, &alternative}));
        if (!best || (figure_.more_is_better ? value > *best : value < *best)) best = value;
      } catch (const Infeasible&) {
        problem = std::current_exception();
      } catch (const InputError&) {  // More samples than an iteration has.
        problem = std::current_exception();
      }
    }
    if (!best) std::rethrow_exception(problem);
    return *best;
  }

 private:
  double once(const Setting& setting) {
    const std::string key = label(setting);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    previous_ = read_experiment(scenario_of(setting), previous_ ? &*previous_ : nullptr);
    return known_[key] = measured(compile(*previous_), table_.backend, figure_);
  }

  const PublishedTable& table_;
  NamedFigure figure_;
  std::map<std::string, double> known_;
  std::optional<Experiment> previous_;  ///< Settings of a table often share the model and the cluster.
};

double one(const PublishedTable& t, const PublishedTable::Row& row, std::size_t column, const Setting& part,
           SettingRuns& runs) {
  const double value =
      runs.best(together({&t.setting, &row.setting, &part, &t.columns[column].setting, &row.only[column]}));
  return t.over ? value / runs.best(together({&t.setting, &row.setting, &part, &*t.over, &row.over})) : value;
}

double cell(const PublishedTable& t, const PublishedTable::Row& row, std::size_t column, SettingRuns& runs) {
  std::vector<double> parts;
  for (const Setting& part : t.all_of) parts.push_back(one(t, row, column, part, runs));
  double value = parts.empty() ? one(t, row, column, {}, runs) : 0;
  if (!parts.empty() && t.take == Aggregate::Mean)
    value = std::accumulate(parts.begin(), parts.end(), 0.0) / static_cast<double>(parts.size());
  if (!parts.empty() && t.take == Aggregate::Largest) value = *std::max_element(parts.begin(), parts.end());
  if (!parts.empty() && t.take == Aggregate::Smallest) value = *std::min_element(parts.begin(), parts.end());
  return value * t.scale * row.scale + t.offset;
}

void fill(Reproduced& r, const PublishedTable& t, SettingRuns& runs) try {
  const PublishedTable::Row& row = t.rows[r.row];
  r.ours = cell(t, row, r.column, runs);
  if (t.match_rule.gated() && !row.calibrated)
    r.verdict = t.match_rule.holds(r.published, r.ours) ? Verdict::Met : Verdict::Missed;
} catch (const InputError& e) {
  r.verdict = Verdict::Failed;
  r.problem = e.problems().front().message;
} catch (const Infeasible& e) {
  r.verdict = Verdict::Failed;
  r.problem = full_message(e.problem());
} catch (const BackendError& e) {
  r.verdict = Verdict::Failed;
  r.problem = e.what();
}

/// Marks both figures of a pair in a row as missed when their order is the reverse of the published order.
void judge_order(std::span<Reproduced> row) {
  for (Reproduced& a : row)
    for (const Reproduced& b : row)
      if (a.verdict == Verdict::Met && b.verdict != Verdict::Failed && a.published != b.published &&
          (a.published < b.published) != (a.ours < b.ours))
        a.verdict = Verdict::Missed;
}

}  // namespace

int Reproduction::count(Verdict verdict) const {
  return static_cast<int>(
      std::count_if(cells.begin(), cells.end(), [&](const Reproduced& r) { return r.verdict == verdict; }));
}

std::string Reproduction::unexpected(const Reproduced& r) const {
  const std::optional<double>& said = published.tables[r.table].rows[r.row].missed[r.column];
  const double off = 100 * r.deviation();
  if (r.verdict == Verdict::Failed) return "it failed";
  if (r.verdict != Verdict::Missed)
    return said ? fmt::format("it is {}, and the file says missed by {:+.1f} %",
                              r.verdict == Verdict::Met ? "met" : "not judged", *said)
                : "";
  if (!said) return fmt::format("it is missed by {:+.1f} %, and the file does not say so", off);
  if (std::abs(off - *said) <= kSameDeviation) return "";
  return fmt::format("it is missed by {:+.1f} %, and the file says by {:+.1f} %", off, *said);
}

int Reproduction::unexpected() const {
  return static_cast<int>(
      std::count_if(cells.begin(), cells.end(), [&](const Reproduced& r) { return !unexpected(r).empty(); }));
}

std::int64_t figure_count(const Published& published) {
  std::int64_t count = 0;
  for (const PublishedTable& table : published.tables)
    for (const PublishedTable::Row& row : table.rows)
      count += std::count_if(row.values.begin(), row.values.end(), [](const auto& value) { return value.has_value(); });
  return count;
}

Reproduction reproduce(Published published, const std::function<void()>& after_each) {
  Reproduction reproduction{std::move(published), {}};
  for (std::size_t t = 0; t < reproduction.published.tables.size(); ++t) {
    const PublishedTable& table = reproduction.published.tables[t];
    SettingRuns runs(table);
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      const std::size_t first = reproduction.cells.size();
      for (std::size_t column = 0; column < table.columns.size(); ++column) {
        const std::optional<double>& value = table.rows[row].values[column];
        if (!value) continue;
        Reproduced r;
        r.table = t, r.row = row, r.column = column, r.published = *value;
        fill(r, table, runs);
        reproduction.cells.push_back(std::move(r));
        after_each();
      }
      if (table.match_rule.order) judge_order(std::span(reproduction.cells).subspan(first));
    }
  }
  return reproduction;
}

}  // namespace stagecraft
