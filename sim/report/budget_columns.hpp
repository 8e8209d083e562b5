#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/report/economics.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {

/// One row of a table as its budget sees it.
struct RowBudget {
  Economics economics;  ///< By the budget of the scenario; empty without one.
  Seconds period;       ///< The period that the economics are of.
  double samples = 0;   ///< Samples of an iteration.
  double tokens = 0;    ///< Tokens of an iteration; zero where samples have none.
};

/// Which columns a table has besides those that its rows know.
struct BudgetColumns {
  bool has_price = false;     ///< Another column has the price already, as with the lowest cost as the objective.
  bool every_column = false;  ///< All columns, for the schema.
};

/// What each row takes of the scenario's budget: tokens per second, the price of 10^9 tokens or samples, the time and
/// the price of the training, and goodput; each where the budget of some row says enough.
TableColumns<RowBudget> budget_columns(const std::vector<RowBudget>& rows, const BudgetColumns&);

/// What the columns mean, for the lines below the table; empty without a budget.
std::string budget_text(const std::vector<RowBudget>& rows, const BudgetColumns&);

/// Adds budget_columns() after the throughput. `budget_of` must not refer to what may be gone when cells are computed.
template <class Row>
void add_budget_columns(TableColumns<Row>& columns, const std::vector<RowBudget>& rows, const BudgetColumns& which,
                        const std::function<RowBudget(const Row&)>& budget_of) {
  TableColumns<Row> added;
  for (TableColumnOf<RowBudget>& c : budget_columns(rows, which))
    added.push_back(
        {std::move(c.column), [cell = std::move(c.cell), budget_of](const Row& row) { return cell(budget_of(row)); }});
  auto place = columns.begin();
  while (!place->column.key || place->column.key->name() != "throughput_samples_per_s") ++place;
  columns.insert(place + 1, added.begin(), added.end());
}

}  // namespace stagecraft
