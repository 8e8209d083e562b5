// Writes results.json, validation.json and the JSON of `schedule`; results_fields.cpp and json_fields.cpp describe
// their fields.

#include "sim/output/json_files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/core/sha256.hpp"
#include "sim/output/rank_table.hpp"
#include "sim/result/expected_failures.hpp"
#include "sim/result/link_use.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {
namespace {

Json provenance(const Timeline& timeline) {
  const Provenance& p = timeline.provenance;
  const char* const clocks[] = {"simulated", "host", "device"};
  return JsonObject{{"backend", p.backend},
                    {"backend_version", p.backend_version},
                    {"clock", clocks[static_cast<int>(timeline.clock)]},
                    {"stagecraft", p.stagecraft_version},
                    {"scenario_sha256", p.scenario_hash},
                    {"seed", p.seed},
                    {"machine", p.machine}};
}

Json setup_json(const RunSetup& s) {
  return JsonObject{{"scenario_file", s.scenario_file},
                    {"model", s.model},
                    {"cluster", s.cluster},
                    {"schedule", s.schedule},
                    {"planner", s.planner},
                    {"plan", s.plan},
                    {"stages", s.stages},
                    {"devices", s.devices},
                    {"micro_batches", s.micro_batches},
                    {"weights", s.weights}};
}

Json idle_json(const IdleTimes& i) {
  return JsonObject{{"start_up_s", i.start_up.value},
                    {"input_s", i.input.value},
                    {"drain_s", i.drain.value},
                    {"transfer_s", i.exposed.messages.value},
                    {"collective_s", i.exposed.collectives().value},
                    {"host_memory_s", i.exposed.host_memory.value},
                    {"receiver_s", i.receiver.value},
                    {"other_s", i.other.value}};
}

Json device_json(DeviceId id, const Report& report, const Cluster& cluster, const Program& program) {
  const DeviceReport& d = report.devices[id];
  const MemoryPeak& m = d.memory;
  Json json = JsonObject{{"name", cluster.devices[id].name},
                         {"type", cluster.type_of(id).name},
                         {"used", d.used},
                         {"busy_s", d.busy.value},
                         {"exposed_communication_s", exposed_communication(d.time).value},
                         {"utilisation", d.utilisation},
                         {"time", main_classes_json(d.time)},
                         {"idle", idle_json(d.idle)},
                         {"energy_J", d.energy.value},
                         {"peak_memory_bytes", m.total.value},
                         {"memory_capacity_bytes", (m.capacity + m.reserved).value},
                         {"peak_memory_at", m.at.valid() ? to_text(program, m.at, id) : ""},
                         {"resident_bytes", m.resident.value},
                         {"stash_bytes", m.stash.value},
                         {"received_bytes", m.received.value},
                         {"outgoing_bytes", m.outgoing.value},
                         {"peak_activations", m.activations}};
  if (m.reserved.value > 0) json["memory_reserved_bytes"] = m.reserved.value;
  return json;
}

/// A fingerprint of the final weights: two runs that agree to the last bit have the same.
std::string weights_sha256(const Learnt& learnt) {
  std::string bytes;
  for (const auto& stage : learnt.weights)
    bytes.append(reinterpret_cast<const char*>(stage.data()), stage.size() * sizeof(double));
  return sha256(bytes);
}

Json learnt_json(const Learnt& learnt, const Cluster& cluster) {
  Json json = JsonObject{{"losses", learnt.losses}, {"weights_sha256", weights_sha256(learnt)}};
  json["evaluations"] = JsonArray();
  for (const Evaluation& e : learnt.evaluations)
    json["evaluations"].push_back(JsonObject{{"updates", e.updates}, {"loss", e.loss}});
  json["memory"] = JsonArray();
  for (const DeviceId d : learnt.memory.ids()) {
    if (!cluster.devices.contains(d)) break;
    const MeasuredMemory& m = learnt.memory[d];
    Json memory = JsonObject{{"name", cluster.devices[d].name},         {"total_bytes", m.total.value},
                             {"weights_bytes", m.weights.value},        {"weight_buffers", m.weight_buffers},
                             {"gradients_bytes", m.gradients.value},    {"optimizer_bytes", m.optimizer.value},
                             {"activations_bytes", m.activations.value}};
    if (m.host.value > 0) memory["host_bytes"] = m.host.value;
    json["memory"].push_back(std::move(memory));
  }
  return json;
}

Json enqueued_json(const Enqueued& e) {
  Json json = JsonObject{{"by_calls_s", e.by_calls.value},
                         {"by_graph_s", e.by_graph.value},
                         {"graphs_made", e.graphs},
                         {"graph_launches", e.launches},
                         {"graph_launches_recorded", e.recorded}};
  if (!e.no_graph.empty()) json["no_graph"] = e.no_graph;
  if (e.calls > 0) json["calls"] = e.calls;
  if (e.streams > 0) json["streams"] = e.streams;
  if (!e.warning.empty()) json["warning"] = e.warning;
  json["timed_products"] = e.timed_products;
  if (!e.attention.empty()) json["attention"] = e.attention;
  return json;
}

Json lateness_json(const std::vector<double>& lateness) {
  return JsonObject{{"count", std::ssize(lateness)},
                    {"late_median_s", lateness[lateness.size() / 2]},
                    {"late_worst_s", lateness.back()}};
}

/// "0 3 100": percent of the bandwidth in equal parts of the run, rounded up, so that what is used is never 0.
std::string percents(const std::vector<double>& use) {
  std::string text;
  for (const double share : use)
    text += fmt::format("{}{}", text.empty() ? "" : " ", static_cast<int>(std::ceil(100 * share - 1e-9)));
  return text;
}

Json links_json(const Program& program, const Timeline& timeline, const Report& report, const Cluster& cluster) {
  constexpr int kParts = 100;
  std::vector<std::vector<double>> use;
  if (timeline.instruction_times) use = link_use(program, timeline, cluster, report, kParts);
  Json links = JsonArray();
  for (std::size_t i = 0; i < report.links.size(); ++i) {
    const LinkReport& l = report.links[i];
    const Link& link = cluster.links[l.link];
    Json json = JsonObject{{"name", link.name}, {"traffic_bytes", l.traffic.value}, {"utilisation", l.utilisation}};
    if (link.duplex != Duplex::Half) json["forward"] = l.forward;
    if (!use.empty()) json["percent_over_time"] = percents(use[i]);
    links.push_back(std::move(json));
  }
  return links;
}

/// Changes as times, for drawings. A change without an end lasts until the end of the run.
Json change_times(const Cluster& cluster) {
  Json changes = JsonArray();
  for (const Change& c : cluster.changes) {
    Json json = JsonObject{{"devices", JsonArray()}, {"links", JsonArray()}, {"from_s", c.from.value}};
    for (const DeviceId d : c.devices) json["devices"].push_back(cluster.devices[d].name);
    for (const LinkId l : c.links) json["links"].push_back(cluster.links[l].name);
    if (c.until.value < kForEver) json["until_s"] = c.until.value;
    if (c.every.value > 0) json["every_s"] = c.every.value, json["lasts_s"] = c.lasts.value;
    changes.push_back(std::move(json));
  }
  return changes;
}

}  // namespace

Json search_json(const ScheduleSearch& s) {
  return JsonObject{{"objective", s.period ? "period" : "makespan"},
                    {"found_s", s.time.value},
                    {"lower_bound_s", s.bound.value},
                    {"lower_bound_reason", s.reason},
                    {"from", s.from}};
}

std::string results_json(const std::string& title, const Program& program, const Timeline& timeline,
                         const Report& report, const Cluster& cluster, const std::optional<ScheduleSearch>& search,
                         const std::optional<RunSetup>& setup) {
  Json json = JsonObject{{"schema", "results/1"},
                         {"title", title},
                         {"provenance", provenance(timeline)},
                         {"setup", setup ? setup_json(*setup) : Json()}};
  const RunView view{nullptr, program, cluster, timeline, report};
  for (const Metric& m : metrics())
    if (*m.path == '\0') json[m.name] = metric_json(m, m.value_of(view));
  json["drain_every"] = program.drain_every;
  json["fill"] = report.fill;
  json["drain"] = report.drain;
  json["critical_path"] = JsonObject{{"instructions", report.critical_path.size()},
                                     {"compute_s", report.critical_compute.value},
                                     {"transfer_s", report.critical_transfer.value},
                                     {"wait_s", report.critical_wait.value}};
  json["devices"] = JsonArray();
  for (const DeviceId d : report.devices.ids())
    if (cluster.devices.contains(d)) json["devices"].push_back(device_json(d, report, cluster, program));
  json["ranks"] = to_json(rank_table(report, cluster));
  json["links"] = links_json(program, timeline, report, cluster);
  if (const std::string note = unrouted_collectives_text(program); !note.empty()) json["links_note"] = note;
  for (const Change& change : cluster.changes) json["changes"].push_back(to_text(change, cluster));
  if (!cluster.changes.empty()) json["change_times"] = change_times(cluster);
  if (cluster.jitter.max_fraction > 0) json["jitter_most"] = cluster.jitter.max_fraction;
  if (search) json["search"] = search_json(*search);
  if (report.rates)
    json["rates"] = JsonObject{{"devices", program.work.devices},
                               {"tokens_per_s_per_device", report.rates->tokens_per_second},
                               {"model_flops_per_device", report.rates->model.value},
                               {"mfu", report.rates->of_peak},
                               {"hfu", report.rates->hardware_of_peak},
                               {"tokens_per_s", report.rates->tokens_per_second * program.work.devices},
                               {"energy_per_token_J", report.rates->joules_per_token}};
  if (const auto failures = expected_failures(program, report)) json["expected_failures"] = *failures;
  if (report.economics) json["economics"] = economics_json(*report.economics);
  if (program.group > 1) json["devices_per_group"] = program.group;
  if (report.interval) json["interval"] = interval_json(*report.interval);
  if (timeline.instruction_times) json["time"] = classes_json(report.time);
  if (timeline.instruction_times && !program.parts.empty()) json["passes"] = passes_json(program);
  if (!report.diagnosis.findings.empty()) json["diagnosis"] = diagnosis_json(report.diagnosis);
  if (!report.diagnosis.not_simulated.empty()) json["diagnosis_note"] = report.diagnosis.not_simulated;
  if (!timeline.instruction_times) json["not_timed"] = "instructions, so nothing within an iteration";
  if (timeline.enqueued) json["enqueued"] = enqueued_json(*timeline.enqueued);
  if (!timeline.lateness.empty()) json["sleeps"] = lateness_json(timeline.lateness);
  if (timeline.learnt) json["learnt"] = learnt_json(*timeline.learnt, cluster);
  return json.dump(2);
}

namespace {

JsonObject pair_json(const Pair& p) {
  return {{"name", p.name},     {"simulated", p.simulated}, {"measured", p.measured},
          {"spread", p.spread}, {"error", p.error()},       {"readings", p.count}};
}

}  // namespace

Json pairs_json(const std::vector<Pair>& pairs) {
  Json list = JsonArray();
  for (const Pair& p : pairs) list.push_back(pair_json(p));
  return list;
}

std::string validation_json(const std::string& title, const Validation& v, const Timeline& simulated,
                            const Timeline& measured, double tolerance, const std::optional<Json>& network) {
  Json notes = JsonArray();
  for (const auto* list : {&v.notes, &v.doubts})
    for (const std::string& note : *list) notes.push_back(note);
  Json json = JsonObject{{"schema", "validation/1"},
                         {"title", title},
                         {"simulated", provenance(simulated)},
                         {"measured", provenance(measured)},
                         {"tolerance", tolerance},
                         {"within_tolerance", within(v, tolerance)},
                         {"sure", is_sure(v, tolerance)},
                         {"notes", notes},
                         {"iteration_s", pair_json(v.iteration)},
                         {"iterations_measured_s", v.iterations},
                         {"instructions_s", pairs_json(v.kinds)},
                         {"by_stage_s", pairs_json(v.ops)},
                         {"device_busy_s", pairs_json(v.devices)},
                         {"peak_memory_bytes", pairs_json(v.memory)}};
  if (network) json["network"] = *network;
  if (!v.replayed.empty()) {
    const ModelError model = model_error(v);
    json["iterations_replayed_s"] = v.replayed;
    json["model_error"] = JsonObject{{"median", model.median}, {"worst", model.worst}};
    json["cost_error"] = cost_error(v);
  }
  for (const CoreWaits& w : v.waits)
    json["core_waits_s"].push_back(
        JsonObject{{"waited", w.waited}, {"simulated", w.simulated}, {"computing", w.computing}, {"marked", w.marked}});
  return json.dump(2);
}

std::string schedule_json(const std::string& name, const Program& program, const Report& report,
                          const std::vector<double>& peaks, const std::optional<ScheduleSearch>& search) {
  Json busy = JsonArray();
  double busiest = 0;
  for (const DeviceReport& d : report.devices) {
    busy.push_back(d.busy.value);
    busiest = std::max(busiest, d.busy.value);
  }
  const double makespan = report.makespan.value;
  Json json = JsonObject{{"schedule", name},
                         {"ranks", program.devices},
                         {"stages", program.micro_batches.size()},
                         {"micro_batches", program.micro_batches.front()},
                         {"makespan", makespan},
                         {"period", report.period.value},
                         {"bubble", report.bubble},
                         {"bubble_time", makespan - busiest},
                         {"bubble_ratio_busiest", makespan > 0 ? 1 - busiest / makespan : 0},
                         {"busy", busy},
                         {"peak_activations", peaks}};
  if (search)
    json["search"] = JsonObject{{"objective", search->period ? "period" : "makespan"},
                                {"found", search->time.value},
                                {"lower_bound", search->bound.value},
                                {"lower_bound_reason", search->reason},
                                {"from", search->from}};
  return json.dump(2);
}

}  // namespace stagecraft
