#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/output/contended_result.hpp"
#include "sim/output/table.hpp"
#include "sim/output/text.hpp"
#include "sim/result/economics.hpp"

namespace stagecraft {

/// A run as a row of a table, whatever the table compares: what was set, and what the simulation says, or why it says
/// nothing. Each table adds what it alone knows.
struct RunRow {
  std::string planner;            ///< Empty in tables where all rows have one plan.
  std::string schedule;           ///< Its name, with its placement where the table searches for an order.
  std::string why_not;            ///< One line; empty when it ran.
  std::string plan_words;         ///< plan_words() of its plan.
  std::vector<std::string> sets;  ///< Options (path=value) that turn the scenario into this row.
  int stages = 0, devices = 0;
  std::map<std::string, int> devices_of_type;
  Seconds makespan, period;                 ///< Simulated; the period is the time of one iteration.
  std::optional<ContendedResult> replayed;  ///< Makespan and period with contention.
  double throughput = 0;                    ///< Samples per second at the period.
  Bytes memory;                             ///< Peak memory of the fullest device.
  Bytes unexchanged;                        ///< Gradients of tied weights whose exchange is not simulated.
  double samples = 0, tokens = 0;           ///< Numbers in an iteration; no tokens where samples have none.
  Economics economics;                      ///< By the budget of the scenario; empty without one.

  bool ran() const { return why_not.empty(); }
  /// Whether its times with contention are known.
  bool ran_contended() const { return replayed && replayed->ran(); }
};

/// The period with contention where it is known, otherwise the period without.
inline Seconds known_period(const RunRow& r) { return r.ran_contended() ? r.replayed->period : r.period; }

/// The gradients that are not exchanged, as a line below the table; empty where there are none.
template <class Rows>
std::string unexchanged_text_of(const Rows& rows) {
  Unexchanged list;
  for (const RunRow& r : rows) list.emplace_back(r.schedule, r.unexchanged);
  return unexchanged_text(list);
}

/// Which columns a table has besides those that its rows know.
struct BudgetColumns {
  bool has_price = false;     ///< Another column has the price already, as with the lowest cost as the objective.
  bool every_column = false;  ///< All columns, for the schema.
};

/// What each row takes of the scenario's budget: tokens per second, the price of 10^9 tokens or samples, the time and
/// the price of the training, and goodput; each where the budget of some row says enough.
TableColumns<RunRow> budget_columns(const std::vector<RunRow>& rows, const BudgetColumns&);

/// What the columns mean, for the lines below the table; empty without a budget.
std::string budget_text(const std::vector<RunRow>& rows, const BudgetColumns&);

/// Adds budget_columns() after the throughput.
template <class Row>
void add_budget_columns(TableColumns<Row>& columns, const std::vector<Row>& rows, const BudgetColumns& which) {
  TableColumns<Row> added;
  for (TableColumnOf<RunRow>& c : budget_columns({rows.begin(), rows.end()}, which))
    added.push_back({std::move(c.column), std::move(c.cell)});
  auto place = columns.begin();
  while (!place->column.key || place->column.key->name() != "throughput_samples_per_s") ++place;
  columns.insert(place + 1, added.begin(), added.end());
}

}  // namespace stagecraft
