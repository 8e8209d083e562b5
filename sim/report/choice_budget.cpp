#include "sim/report/choice_budget.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/report/result_columns.hpp"

namespace stagecraft {
namespace {

constexpr double kSecondsOfHour = 3600;

/// The unit of prices, whatever the search minimizes.
ObjectiveUnit price_unit(const ChoiceTable& t) { return {Objective::Cost, t.unit.samples, t.unit.tokens}; }

/// Dollars of an iteration.
double price_of(const Choice& c) {
  return c.economics.dollars_per_hour / kSecondsOfHour * known_period(c).value / c.economics.goodput;
}

template <class Holds>
bool any_row(const ChoiceTable& t, Holds holds) {
  return std::any_of(t.front.begin(), t.front.end(), [&](const Choice& c) { return holds(c.economics); });
}

bool has_prices(const ChoiceTable& t) {
  return any_row(t, [](const Economics& e) { return e.dollars_per_hour > 0; });
}
bool has_duration(const ChoiceTable& t) {
  return any_row(t, [](const Economics& e) { return e.duration.value > 0; });
}
bool has_dollars(const ChoiceTable& t) {
  return any_row(t, [](const Economics& e) { return e.dollars > 0; });
}
bool has_failures(const ChoiceTable& t) {
  return any_row(t, [](const Economics& e) { return e.interval.value > 0; });
}

/// The price of tokens or samples, which is the first column already where it is the objective.
TableColumns<Choice>::value_type price_column(const ChoiceTable& t) {
  const ObjectiveUnit unit = price_unit(t);
  const std::vector<FileColumn> keys = objective_columns();
  const auto key =
      std::find_if(keys.begin(), keys.end(), [&](const FileColumn& c) { return c.name() == unit.column(); });
  return {{.key = *key, .heading = "cost", .width = 9, .drop_order = 1},
          [unit](const Choice& c) { return TableCell(unit.in_unit(price_of(c)), unit.number_text(price_of(c))); }};
}

}  // namespace

void add_budget_columns(TableColumns<Choice>& columns, const ChoiceTable& t, bool every_column) {
  TableColumns<Choice> added;
  if (!every_column && has_prices(t) && t.unit.objective != Objective::Cost) added.push_back(price_column(t));
  if (every_column || has_duration(t))
    added.push_back({{.key = result_column("training_s"), .heading = "training", .width = 10, .drop_order = 1},
                     [](const Choice& c) {
                       return TableCell(c.economics.duration.value, training_time_text(c.economics.duration));
                     }});
  if (every_column || has_dollars(t))
    added.push_back(
        {{.key = result_column("training_dollars"), .heading = "total", .width = 8, .drop_order = 1},
         [](const Choice& c) { return TableCell(c.economics.dollars, dollars_text(c.economics.dollars)); }});
  if (every_column || has_failures(t))
    added.push_back(
        {{.key = result_column("goodput"), .heading = "goodput", .width = 7, .drop_order = 5}, [](const Choice& c) {
           return TableCell(c.economics.goodput, fmt::format("{:.1f} %", 100 * c.economics.goodput));
         }});
  const auto place = std::find_if(columns.begin(), columns.end(), [](const auto& c) {
    return c.column.key && c.column.key->name() == "throughput_samples_per_s";
  });
  columns.insert(place + 1, added.begin(), added.end());
}

std::string budget_text(const ChoiceTable& t) {
  std::string text;
  if (has_prices(t) && t.unit.objective != Objective::Cost) text += "cost: " + price_unit(t).unit() + "\n";
  if (has_duration(t))
    text += fmt::format("training: time for all tokens of report.tokens{}\n",
                        has_dollars(t) ? "; total: the price of that time" : "");
  return text;
}

}  // namespace stagecraft
