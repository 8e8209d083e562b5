#pragma once

#include <string>
#include <vector>

#include "sim/report/choice_table.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {

/// Adds what each row takes of the scenario's budget, after its throughput: the price of 10^9 tokens or samples, the
/// time and the price of the training, and goodput; each where the budget says enough. `every_column`: all of them, for
/// the schema.
void add_budget_columns(TableColumns<Choice>&, const ChoiceTable&, bool every_column);

/// What the columns mean, for the lines below the table; empty without a budget.
std::string budget_text(const ChoiceTable&);

}  // namespace stagecraft
