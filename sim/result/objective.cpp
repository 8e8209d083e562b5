// Time, cost and energy as objectives of a search, with their units and columns.

#include "sim/result/objective.hpp"

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/quantity.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names{"time", "cost", "energy"};
  return names;
}

double ObjectiveUnit::in_unit(double amount) const {
  if (is_time()) return amount;
  return amount / (tokens > 0 ? tokens : samples) * (objective == Objective::Cost ? 1e9 : 1);
}

std::string ObjectiveUnit::column() const {
  if (is_time()) return "period_s";
  const std::string item = tokens > 0 ? "token" : "sample";
  return objective == Objective::Cost ? "dollars_per_billion_" + item + "s" : "energy_per_" + item + "_J";
}

std::string ObjectiveUnit::unit() const {
  if (is_time()) return "seconds";
  const std::string item = tokens > 0 ? "token" : "sample";
  return objective == Objective::Cost ? "dollars for 10^9 " + item + "s" : "joules a " + item;
}

std::string ObjectiveUnit::number_text(double amount) const {
  return to_text(metrics()[metric(column())], in_unit(amount));
}

std::string ObjectiveUnit::text(double amount) const {
  if (is_time()) return number_text(amount);
  const std::string item = tokens > 0 ? "token" : "sample";
  return number_text(amount) + (objective == Objective::Cost ? " for 10^9 " + item + "s" : " a " + item);
}

std::vector<FileColumn> objective_columns() {
  const auto column = [](const char* name, const char* presence) {
    return only(metric_column(metrics()[metric(name)]), presence);
  };
  const char *priced = "with `report.price`", *energy = "with --objective energy";
  return {column("dollars_per_billion_tokens", priced), column("dollars_per_billion_samples", priced),
          column("energy_per_token_J", energy), column("energy_per_sample_J", energy)};
}

Json objective_json(const ObjectiveUnit& unit, double bound, double configured) {
  if (unit.is_time()) return {};
  const auto known_amount = [&](double amount) { return amount > 0 ? Json(unit.in_unit(amount)) : Json(); };
  return JsonObject{{"name", objective_names()[static_cast<std::size_t>(unit.objective)]},
                    {"unit", unit.unit()},
                    {"bound", known_amount(bound)},
                    {"own", known_amount(configured)}};
}

config::Field objective_field() {
  using namespace config;
  static const MapSpec spec{
      .title = "What a search with --objective minimizes.",
      .fields = {
          choice("name", {"cost", "energy"}).doc("The objective."),
          text("unit").doc("Unit of the amounts: dollars for 10^9 tokens or samples, joules a token or sample."),
          real("bound", 0, kInfinity).nullable().doc("No plan with any order of work is below; null: not known."),
          real("own", 0, kInfinity).nullable().doc("The scenario as it is written; null where it cannot run.")}};
  return map("objective", spec).nullable().doc("What the search minimizes instead of the period; null: the period.");
}

}  // namespace stagecraft
