// Goodput under failures, days and dollars of a training, from its speed and the `report:` of a scenario.

#include "sim/result/economics.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr double kHour = 3600, kDay = 24 * kHour, kBillion = 1e9;

config::MapSpec make_failure_fields() {
  using namespace config;
  return {.title = "Failures of devices, for goodput by the model of Young (1974) and Daly (2006).",
          .fields = {
              quantity("mtbf", Dimension::Time)
                  .doc("Mean time between failures of one device. A job of n devices fails n times as often."),
              quantity("checkpoint", Dimension::Time).doc("Time to write a checkpoint, in which nothing is computed."),
              quantity("restart", Dimension::Time)
                  .fallback("0 s")
                  .doc("Time from a failure until the job computes again from its newest checkpoint."),
              quantity("repair", Dimension::Time)
                  .optional()
                  .doc("Time until a node that failed is back. Without it a spare node always takes its place."),
              integer("spares", 0, 1e6)
                  .fallback("0")
                  .doc("With `repair`: nodes that wait to take the place of one that failed. The job stops while more "
                       "nodes are in repair.")}};
}

}  // namespace

double goodput(Seconds mtbf, Seconds checkpoint, Seconds restart, Seconds interval) {
  const double m = mtbf.value, t = interval.value;
  return t / (m * std::exp(restart.value / m) * std::expm1((t + checkpoint.value) / m));
}

double availability(Seconds mtbf, Seconds repair, int spares) {
  const double a = repair / mtbf;
  double loss = 1;
  for (int lines = 1; lines <= spares + 1; ++lines) loss = a * loss / (lines + a * loss);
  return 1 - loss;
}

Seconds best_checkpoint_interval(Seconds mtbf, Seconds checkpoint) {
  const double m = mtbf.value, d = checkpoint.value;
  if (d >= 2 * m) return mtbf;
  const double x = d / (2 * m);
  return {std::sqrt(2 * d * m) * (1 + std::sqrt(x) / 3 + x / 9) - d};
}

double dollars_per_hour(const TrainingBudget& budget, const std::map<std::string, int>& devices) {
  double sum = 0;
  for (const auto& [type, count] : devices) {
    const auto price = budget.prices.find(type);
    const bool is_listed = price != budget.prices.end();
    if (!is_listed && budget.price <= 0 && !budget.prices.empty())
      throw InputError(
          {{budget.prices_where, "report.prices", fmt::format("'{}' has no price, and others have one", type),
            fmt::format("add '{}: ...', or report.price for all types that are not listed", type), "price"}});
    sum += (is_listed ? price->second : budget.price) * count;
  }
  return sum;
}

void check_prices(const TrainingBudget& budget, const std::vector<std::string>& types) {
  for (const auto& [type, price] : budget.prices)
    if (std::find(types.begin(), types.end(), type) == types.end())
      throw InputError({{budget.prices_where, "report.prices", fmt::format("the cluster has no device type '{}'", type),
                         fmt::format("its types are {}", join(types)), "price"}});
}

Economics economics(const TrainingBudget& budget, const std::map<std::string, int>& devices_of_type,
                    double tokens_per_second) {
  Economics e;
  int devices = 0;
  for (const auto& [type, count] : devices_of_type) devices += count;
  e.devices = devices;
  e.dollars_per_hour = dollars_per_hour(budget, devices_of_type);
  if (budget.failures && devices > 0) {
    const FailureModel& f = *budget.failures;
    const Seconds mtbf = f.mtbf / devices;
    e.interval = best_checkpoint_interval(mtbf, f.checkpoint);
    e.goodput = goodput(mtbf, f.checkpoint, f.restart, e.interval);
    e.spares = f.spares;
    if (f.repair.value > 0) {
      for (int spares = 0; spares <= f.spares + 1; ++spares)
        e.goodput_of_spares.push_back(e.goodput * availability(mtbf, f.repair, spares));
      e.goodput = e.goodput_of_spares[static_cast<std::size_t>(f.spares)];
    }
  }
  const double rate = tokens_per_second * e.goodput;
  if (rate <= 0) return e;
  const double dollars_per_second = e.dollars_per_hour / kHour;
  e.dollars_per_billion_tokens = dollars_per_second * kBillion / rate;
  e.duration = {budget.tokens / rate};
  e.dollars = dollars_per_second * e.duration.value;
  return e;
}

std::vector<config::Field> budget_fields() {
  using namespace config;
  static const MapSpec failures = make_failure_fields();
  return {real("price", 0, 1e6)
              .optional()
              .doc("Dollars for an hour of one device, for the cost of training, of types that are not in `prices`."),
          table("prices", real("type", 0, 1e6)).optional().doc("Dollars for an hour of one device, by device type."),
          real("tokens", 1, 1e18).optional().doc("Tokens to train on, for the days and the cost of the training."),
          map("failures", failures).optional().doc("How often devices fail, for goodput.")};
}

TrainingBudget read_budget(const config::Value& report) {
  TrainingBudget budget;
  if (const config::Value* price = report.find("price")) budget.price = config::as_real(*price);
  if (const config::Value* prices = report.find("prices")) {
    budget.prices_where = prices->where;
    for (const config::Member& price : prices->members) budget.prices[price.key] = config::as_real(price.value);
  }
  if (const config::Value* tokens = report.find("tokens")) budget.tokens = config::as_real(*tokens);
  if (const config::Value* f = report.find("failures")) {
    budget.failures = {.mtbf = config::as_seconds(f->at("mtbf")),
                       .checkpoint = config::as_seconds(f->at("checkpoint")),
                       .restart = config::as_seconds(f->at("restart"))};
    if (const config::Value* repair = f->find("repair")) budget.failures->repair = config::as_seconds(*repair);
    budget.failures->spares = static_cast<int>(config::as_real(f->at("spares")));
    config::Problems problems;
    if (budget.failures->spares > 0 && !f->find("repair"))
      problems.add(f->at("spares").where, "report.failures.spares",
                   "without the time of a repair a spare node always takes the place of one that failed",
                   "add repair: 24 h, or leave spares out", "failures");
    for (const char* field : {"mtbf", "checkpoint", "repair"})
      if (f->find(field) && config::as_seconds(f->at(field)).value <= 0)
        problems.add(f->at(field).where, fmt::format("report.failures.{}", field), "the time is not above zero",
                     "write a time such as 10 min or 600 s", "failures");
    problems.throw_if_any();
  }
  return budget;
}

std::string dollars_text(double amount) {
  if (amount >= 1e6) return fmt::format("${:.4g} M", amount / 1e6);
  return amount >= 1e4 ? fmt::format("${:.4g} k", amount / 1e3) : fmt::format("${:.4g}", amount);
}

std::string training_time_text(Seconds t) {
  if (t.value >= 2 * kDay) return fmt::format("{:.4g} days", t.value / kDay);
  if (t.value >= 2 * kHour) return fmt::format("{:.3g} h", t.value / kHour);
  if (t.value >= 120) return fmt::format("{:.3g} min", t.value / 60);
  return to_text(t);
}

std::vector<EconomicsLine> economics_lines(const Economics& e) {
  std::vector<EconomicsLine> lines;
  if (e.interval.value > 0)
    lines.push_back(
        {"goodput", fmt::format("{:.1f} %", 100 * e.goodput),
         fmt::format("with failures and a checkpoint every {} (Daly 2006)", training_time_text(e.interval))});
  if (!e.goodput_of_spares.empty()) {
    std::string others;
    const int last = static_cast<int>(e.goodput_of_spares.size()) - 1;
    for (const int spares : std::set{0, std::max(0, last - 2), last})
      if (spares != e.spares)
        others += fmt::format("{}{:.1f} % with {}", others.empty() ? "" : ", ",
                              100 * e.goodput_of_spares[static_cast<std::size_t>(spares)],
                              spares == 0 ? "none" : fmt::format("{}", spares));
    lines.push_back({"spare nodes", fmt::format("{}", e.spares), "goodput " + others});
  }
  if (e.dollars_per_billion_tokens > 0)
    lines.push_back({"cost", dollars_text(e.dollars_per_billion_tokens), "for 10^9 tokens"});
  if (e.duration.value > 0)
    lines.push_back({"training", training_time_text(e.duration),
                     e.dollars > 0 ? fmt::format("for all tokens; {}", dollars_text(e.dollars)) : "for all tokens"});
  return lines;
}

Json economics_json(const Economics& e) {
  Json json = JsonObject{{"devices", e.devices}, {"goodput", e.goodput}};
  if (e.interval.value > 0) json["checkpoint_interval_s"] = e.interval.value;
  if (!e.goodput_of_spares.empty()) {
    json["spares"] = e.spares;
    json["goodput_of_spares"] = e.goodput_of_spares;
  }
  if (e.dollars_per_billion_tokens > 0) json["dollars_per_billion_tokens"] = e.dollars_per_billion_tokens;
  if (e.duration.value > 0) json["duration_s"] = e.duration.value;
  if (e.dollars > 0) json["dollars"] = e.dollars;
  return json;
}

config::Field economics_field() {
  using namespace config;
  static const MapSpec spec{
      .title = "Time and cost of a training, by `report.price`, `report.tokens` and `report.failures`.",
      .fields = {
          real("devices", 0, kInfinity).doc("Devices that are paid for: all that take part."),
          real("goodput", 0, 1).doc("Share of the time that is training which no failure undoes; 1 without failures."),
          real("checkpoint_interval_s", 0, kInfinity)
              .optional()
              .doc("Computation between two checkpoints, the optimum by Daly's estimate."),
          integer("spares", 0, 1e6).optional().doc("Spare nodes, where the time of a repair is given."),
          list("goodput_of_spares", real("share", 0, 1))
              .optional()
              .doc("Goodput with 0, 1, ... spare nodes, up to one more than there are."),
          real("dollars_per_billion_tokens", 0, kInfinity).optional().doc("Dollars for 10^9 tokens."),
          real("duration_s", 0, kInfinity).optional().doc("Time of the whole training, with failures."),
          real("dollars", 0, kInfinity).optional().doc("Cost of the whole training.")}};
  return map("economics", spec).optional().doc("Time and cost of a training.");
}

}  // namespace stagecraft
