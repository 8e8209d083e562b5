#include "sim/report/plan_table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

std::string time_text(Seconds t) { return t.value > 0 ? to_text(t) : "-"; }

/// How far a time is above a bound; sums in another order are not.
std::string above_text(Seconds time, Seconds bound) {
  if (time.value <= 0 || bound.value <= 0) return "-";
  double percent = 100 * (time / bound - 1);
  if (std::abs(percent) < 1e-6) percent = 0;
  return two_digits(percent) + " %";
}

std::string off_text(const PlanRow& r) {
  if (r.predicted.value <= 0) return "-";
  return fmt::format("{:+.1f} %", 100 * (r.each / r.predicted - 1));
}

/// Each such bound with the planners that it is for: plans with other micro-batches, or of another kind, have others.
std::string least_text(const PlanTable& table) {
  std::vector<std::pair<std::string, std::string>> bounds;
  for (const PlanRow& r : table.rows) {
    if (!r.ran() || r.least.value <= 0) continue;
    const std::string bound = fmt::format("{:<9}  {}", to_text(r.least), r.least_reason);
    auto known = std::find_if(bounds.begin(), bounds.end(), [&](const auto& b) { return b.first == bound; });
    if (known == bounds.end())
      bounds.emplace_back(bound, r.planner);
    else
      known->second += ", " + r.planner;
  }
  std::string text;
  for (const auto& [bound, planners] : bounds) text += fmt::format("           {}: {}\n", bound, planners);
  return text;
}

}  // namespace

void sort_rows(PlanTable& table) {
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const PlanRow& a, const PlanRow& b) {
    if (a.ran() != b.ran()) return a.ran();
    if (!a.ran()) return a.planner < b.planner;
    return a.period < b.period;
  });
  order_by_replay(table.rows, table.replay, [](const Replayed& r) { return r.period; });
}

/// A column of its own, where rows were played again.
std::string replay_column(const PlanTable& table, const std::string& text) {
  return table.replay.asked() ? fmt::format("  {:>9}", text) : std::string();
}

std::string about_replay(const PlanTable& table) {
  if (table.replay.rows == 0) return {};
  const PlanRow& first = table.rows[table.replay.was_first];
  return replay_text(table.replay, 11, first.planner, first.period, first.replayed);
}

std::string to_text(const PlanTable& table) {
  std::size_t width = 7;
  for (const PlanRow& r : table.rows) width = std::max(width, r.planner.size());
  std::string text = fmt::format("{}\n{} on {}: {}, {} micro-batches\n\n", table.title, table.model, table.cluster,
                                 table.schedule, table.micro_batches);
  text += fmt::format(
      "  {:<{}}  {:<9}  {:>6}  {:>7}  {:>9}  {:>13}  {:>6}  {:>9}  {:>8}  {:>6}  {:>9}{}  {:>9}  {:>8}  {:>9}\n",
      "planner", width, "schedule", "stages", "devices", "predicted", "model's bound", "gap", "simulated", "off",
      "room", "period", replay_column(table, table.replay.backend), "memory", "states", "search");
  for (const PlanRow& r : table.rows) {
    if (!r.ran()) {
      text += fmt::format("  {:<{}}  - {}\n", r.planner, width, r.why_not);
      continue;
    }
    text += fmt::format(
        "  {:<{}}  {:<9}  {:>6}  {:>7}  {:>9}  {:>13}  {:>6}  {:>9}  {:>8}  {:>6}  {:>9}{}  {:>9}  {:>8}  {:>9}\n",
        r.planner, width, r.schedule, r.stages, r.devices, time_text(r.predicted), time_text(r.lower_bound),
        above_text(r.predicted, r.lower_bound), to_text(r.each), off_text(r), above_text(r.each, r.least),
        to_text(r.period), replay_column(table, replayed_text(r.replayed)), to_text(r.memory), r.states,
        to_text(Seconds{r.seconds}));
  }
  text +=
      "\npredicted  one micro-batch in the steady state, by the planner's own model\n"
      "gap        how far that is above the model's bound: no plan of its kind beats it in that model, but in "
      "simulation one may\n"
      "simulated  the same with messages, memory and the schedule; off: how far from the prediction; period: one "
      "iteration\n"
      "room       how far the simulated time is above what no plan with such micro-batches can beat, whoever makes "
      "it\n";
  text += least_text(table) + about_replay(table);
  for (const PlanRow& r : table.rows)
    if (!r.plan.empty()) text += fmt::format("\n{}\n{}", r.planner, r.plan);
  return text;
}

std::string plans_csv(const PlanTable& table) {
  std::string text = "planner,schedule,stages,devices,predicted_s,lower_bound_s,simulated_s,period_s,makespan_s" +
                     replay_csv_head(table.replay) + ",peak_memory_bytes,states,search_s,least_s,reason\n";
  for (const PlanRow& r : table.rows)
    text +=
        r.ran()
            ? fmt::format("{},{},{},{},{},{},{},{},{}{},{},{},{},{},\n", r.planner, r.schedule, r.stages, r.devices,
                          shortest(r.predicted.value), shortest(r.lower_bound.value), shortest(r.each.value),
                          shortest(r.period.value), shortest(r.makespan.value), replayed_csv(table.replay, r.replayed),
                          shortest(r.memory.value), r.states, shortest(r.seconds), shortest(r.least.value))
            : fmt::format("{},,,,,,,,{},,,,,{}\n", r.planner, replayed_csv(table.replay, {}), csv_quoted(r.why_not));
  return text;
}

std::string plans_json(const PlanTable& table) {
  Json json{{"schema", "plans/1"},      {"title", table.title},       {"model", table.model},
            {"cluster", table.cluster}, {"schedule", table.schedule}, {"micro_batches", table.micro_batches},
            {"plans", Json::array()}};
  if (table.replay.asked()) json["replay"] = replay_json(table.replay);
  for (const PlanRow& r : table.rows) {
    if (!r.ran()) {
      json["plans"].push_back({{"planner", r.planner}, {"ran", false}, {"reason", r.why_not}});
      continue;
    }
    json["plans"].push_back({{"planner", r.planner},
                             {"ran", true},
                             {"schedule", r.schedule},
                             {"stages", r.stages},
                             {"devices", r.devices},
                             {"predicted_s", r.predicted.value > 0 ? Json(r.predicted.value) : Json()},
                             {"lower_bound_s", r.lower_bound.value > 0 ? Json(r.lower_bound.value) : Json()},
                             {"lower_bound_reason", r.bound_reason},
                             {"least_s", r.least.value > 0 ? Json(r.least.value) : Json()},
                             {"least_reason", r.least_reason},
                             {"simulated_s", r.each.value},
                             {"period_s", r.period.value},
                             {"makespan_s", r.makespan.value},
                             {"peak_memory_bytes", r.memory.value},
                             {"states", r.states},
                             {"search_s", r.seconds}});
    if (table.replay.asked()) json["plans"].back()["replayed"] = replayed_json(r.replayed);
  }
  return json.dump(2);
}

}  // namespace stagecraft
