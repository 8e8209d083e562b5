#pragma once

#include <string>
#include <vector>

#include "sim/output/run_row.hpp"
#include "sim/output/table.hpp"

namespace stagecraft {

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
