#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/text.hpp"
#include "sim/report/schedule_table.hpp"
#include "sim/report/search_json.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

std::string safe_text(const ScheduleRow& r) {
  if (!r.safe) return "unknown";
  return r.safe->empty() ? "none" : join(*r.safe, " ");
}

}  // namespace

std::string schedules_csv(const ScheduleTable& table) {
  std::string text =
      "schedule,stages,makespan_s,period_s" + replay_csv_head(table.replay) +
      ",bubble,steady_bubble,peak_memory_bytes,fullest_device,peak_activations,traffic_bytes,safe_streams,staleness,"
      "pareto,reason\n";
  const std::vector<bool> front = pareto_front(table);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const ScheduleRow& r = table.rows[i];
    if (!r.ran()) {
      text += fmt::format("{},,,{},,,,,,,,,,{}\n", r.name, replayed_csv(table.replay, {}), csv_quoted(r.why_not));
      continue;
    }
    text += fmt::format("{},{},{},{}{},{},{},{},{},{},{},{},{},{},\n", r.name, r.stages, shortest(r.makespan.value),
                        shortest(r.period.value), replayed_csv(table.replay, r.replayed), shortest(r.bubble),
                        shortest(r.steady_bubble), shortest(r.memory.value), r.fullest, r.activations,
                        shortest(r.traffic.value), safe_text(r), r.staleness, front[i] ? 1 : 0);
  }
  return text;
}

std::string schedules_json(const ScheduleTable& table) {
  const auto name = [](const ScheduleRow* r) { return r ? Json(r->name) : Json(); };
  const BestRows best = best_of(table);
  Json json{{"schema", "schedules/1"},
            {"title", table.title},
            {"model", table.model},
            {"cluster", table.cluster.name},
            {"backend", table.backend},
            {"devices", table.devices},
            {"micro_batches", table.micro_batches},
            {"iterations", table.iterations},
            {"scenario_schedule", table.own},
            {"fastest_synchronous", name(best.synchronous)},
            {"fastest", name(best.fastest)},
            {"least_memory", name(best.smallest)}};
  if (table.replay.asked()) json["replay"] = replay_json(table.replay);
  json["schedules"] = Json::array();
  const std::vector<bool> front = pareto_front(table);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const ScheduleRow& r = table.rows[i];
    if (!r.ran()) {
      json["schedules"].push_back({{"name", r.name}, {"ran", false}, {"reason", r.why_not}});
      continue;
    }
    json["schedules"].push_back({{"name", r.name},
                                 {"ran", true},
                                 {"stages", r.stages},
                                 {"makespan_s", r.makespan.value},
                                 {"period_s", r.period.value},
                                 {"bubble", r.bubble},
                                 {"steady_bubble", r.steady_bubble},
                                 {"peak_memory_bytes", r.memory.value},
                                 {"fullest_device", r.fullest},
                                 {"peak_activations", r.activations},
                                 {"traffic_bytes", r.traffic.value},
                                 {"safe_streams", r.safe ? Json(*r.safe) : Json()},
                                 {"staleness_updates", r.staleness},
                                 {"pareto", static_cast<bool>(front[i])}});
    if (table.replay.asked()) json["schedules"].back()["replayed"] = replayed_json(r.replayed);
    if (r.search) json["schedules"].back()["search"] = search_json(*r.search);
  }
  return json.dump(2);
}

}  // namespace stagecraft
