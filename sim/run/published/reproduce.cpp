#include "sim/run/published/reproduce.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/run/published/named_figures.hpp"

namespace stagecraft {
namespace {

using Verdict = Reproduced::Verdict;

/// Later settings go on top of earlier ones.
Setting together(std::initializer_list<const Setting*> settings) {
  Setting all;
  for (const Setting* s : settings) {
    if (!s->scenario.empty()) all.scenario = s->scenario;
    all.set.insert(all.set.end(), s->set.begin(), s->set.end());
  }
  return all;
}

std::string label(const Setting& setting) {
  std::string text = setting.scenario;
  for (const config::Member& m : setting.set) text += fmt::format(" {}={}", m.key, config::to_json(m.value));
  return text;
}

double measured(const Setting& setting, const std::string& backend, const NamedFigure& figure) {
  config::Problems problems;
  config::Value tree = scenario_tree(setting.scenario, problems);
  problems.throw_if_any();
  tree = checked_scenario(std::move(tree), setting.set, problems);
  problems.throw_if_any();
  const Scenario scenario = settled_scenario(std::move(tree));
  const Prepared prepared = prepare(scenario);
  return figure.of(prepared, run(scenario, prepared, backend));
}

/// Runs settings once each, however many cells need them.
class Runs {
 public:
  Runs(const PublishedTable& table, const std::function<void(const std::string&)>& progress)
      : table_(table), figure_(named_figure(table.figure)), progress_(progress) {}

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
      } catch (const InputError&) {  // Fewer samples than replicas.
        problem = std::current_exception();
      }
    }
    if (!best) std::rethrow_exception(problem);
    return *best;
  }

 private:
  double once(const Setting& setting) {
    const std::string key = label(setting);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    progress_(key);
    return known_[key] = measured(setting, table_.backend, figure_);
  }

  const PublishedTable& table_;
  NamedFigure figure_;
  const std::function<void(const std::string&)>& progress_;
  std::map<std::string, double> known_;
};

double cell(const PublishedTable& t, std::size_t row, std::size_t column, Runs& runs) {
  const Setting& of_row = t.rows[row].setting;
  const double own = runs.best(together({&t.setting, &of_row, &t.columns[column].setting}));
  return t.over ? own / runs.best(together({&t.setting, &of_row, &*t.over})) : own;
}

void fill(Reproduced& r, const PublishedTable& t, Runs& runs) try {
  r.ours = cell(t, r.row, r.column, runs);
  r.verdict = !t.closeness.gated()                     ? Verdict::Shown
              : t.closeness.holds(r.published, r.ours) ? Verdict::Met
                                                       : Verdict::Missed;
} catch (const InputError& e) {
  r.verdict = Verdict::Failed;
  r.problem = e.problems().front().message;
} catch (const Infeasible& e) {
  r.verdict = Verdict::Failed;
  r.problem = e.problem().message;
} catch (const BackendError& e) {
  r.verdict = Verdict::Failed;
  r.problem = e.what();
}

}  // namespace

int Reproduction::count(Verdict verdict) const {
  return static_cast<int>(
      std::count_if(cells.begin(), cells.end(), [&](const Reproduced& r) { return r.verdict == verdict; }));
}

int Reproduction::unexplained() const {
  return static_cast<int>(std::count_if(cells.begin(), cells.end(), [&](const Reproduced& r) {
    const bool bad = r.verdict == Verdict::Missed || r.verdict == Verdict::Failed;
    return bad && published.tables[r.table].rows[r.row].why.empty();
  }));
}

Reproduction reproduce(Published published, const std::function<void(const std::string&)>& progress) {
  Reproduction all{std::move(published), {}};
  for (std::size_t t = 0; t < all.published.tables.size(); ++t) {
    const PublishedTable& table = all.published.tables[t];
    Runs runs(table, progress);
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      for (std::size_t column = 0; column < table.columns.size(); ++column) {
        const std::optional<double>& value = table.rows[row].values[column];
        if (!value) continue;
        Reproduced r;
        r.table = t, r.row = row, r.column = column, r.published = *value;
        fill(r, table, runs);
        all.cells.push_back(std::move(r));
      }
  }
  return all;
}

}  // namespace stagecraft
