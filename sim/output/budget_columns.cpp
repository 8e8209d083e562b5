// The columns about the scenario's budget in the tables of `plan` and `search` (tokens per second, price, time and
// price of the training, goodput), and the lines below a table that explain them.
#include "sim/output/run_row.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/result_columns.hpp"
#include "sim/output/text.hpp"
#include "sim/result/objective.hpp"

namespace stagecraft {
namespace {

constexpr double kSecondsOfHour = 3600;

ObjectiveUnit price_unit(const RunRow& r) { return {Objective::Cost, r.samples, r.tokens}; }

/// Dollars of an iteration.
double dollars_per_iteration(const RunRow& r) {
  return r.economics.dollars_per_hour / kSecondsOfHour * known_period(r).value / r.economics.goodput;
}

bool has_price(const RunRow& r) { return r.economics.dollars_per_hour > 0; }
bool has_tokens(const RunRow& r) { return r.economics.devices > 0 && r.tokens > 0; }
bool has_duration(const RunRow& r) { return r.economics.duration.value > 0; }
bool has_dollars(const RunRow& r) { return r.economics.dollars > 0; }
bool has_goodput(const RunRow& r) { return r.economics.interval.value > 0; }

/// Files have it only where some row has a budget that says enough.
FileColumn budget_column(const char* name) { return only(result_column(name), "with a budget in `report`"); }

bool any_row(const std::vector<RunRow>& rows, bool (*holds)(const RunRow&)) {
  return std::any_of(rows.begin(), rows.end(), holds);
}

TableColumnOf<RunRow> price_column(FileColumn key) {
  const Metric& price = metrics()[metric(key.name())];
  const auto value = [](const RunRow& r) { return price_unit(r).in_unit(dollars_per_iteration(r)); };
  return figure_column<RunRow>(price, value, {.key = std::move(key), .heading = "cost", .width = 9, .drop_order = 1});
}

/// The price of tokens, or of samples where these have no tokens.
void add_price_columns(TableColumns<RunRow>& columns, const std::vector<RunRow>& rows, bool every_column) {
  const auto priced = std::find_if(rows.begin(), rows.end(), has_price);
  for (FileColumn& key : objective_columns()) {
    const bool is_price = key.name().rfind("dollars_", 0) == 0;
    const bool is_of_rows = priced != rows.end() && key.name() == price_unit(*priced).column();
    if (is_of_rows || (every_column && is_price)) columns.push_back(price_column(std::move(key)));
  }
}

}  // namespace

TableColumns<RunRow> budget_columns(const std::vector<RunRow>& rows, const BudgetColumns& which) {
  TableColumns<RunRow> columns;
  const auto add = [&](const char* name, bool (*has)(const RunRow&), auto value, TableColumn layout) {
    if (!which.every_column && !any_row(rows, has)) return;
    layout.key = budget_column(name);
    columns.push_back(figure_column<RunRow>(*find_metric(name), value, std::move(layout)));
  };
  const auto tokens_per_second = [](const RunRow& r) {
    const Seconds period = known_period(r);
    return period.value > 0 ? r.tokens / period.value : 0;
  };
  add("tokens_per_s", has_tokens, tokens_per_second, {.width = 9, .drop_order = 4});
  if (!which.has_price) add_price_columns(columns, rows, which.every_column);
  add("training_s", has_duration, [](const RunRow& r) { return r.economics.duration; }, {.width = 10, .drop_order = 1});
  add("training_dollars", has_dollars, [](const RunRow& r) { return r.economics.dollars; },
      {.width = 8, .drop_order = 1});
  add("goodput", has_goodput, [](const RunRow& r) { return r.economics.goodput; }, {.width = 7, .drop_order = 5});
  return columns;
}

std::string budget_text(const std::vector<RunRow>& rows, const BudgetColumns& which) {
  std::string text;
  const auto priced = std::find_if(rows.begin(), rows.end(), has_price);
  if (priced != rows.end() && !which.has_price) text += "cost: " + price_unit(*priced).unit() + "\n";
  if (any_row(rows, has_duration))
    text += fmt::format("training: time for all tokens of report.tokens{}\n",
                        any_row(rows, has_dollars) ? "; total: the price of that time" : "");
  return text;
}

}  // namespace stagecraft
