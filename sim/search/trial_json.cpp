// Trials and candidates of a search as JSON, for its file and for other processes.

#include "sim/search/trial_json.hpp"

#include <utility>

namespace stagecraft {

Json json_of(const std::string& settings, const Trial& t) {
  const Choice& c = t.choice;
  Json json = JsonObject{{"settings", settings},
                         {"result", static_cast<int>(t.result)},
                         {"why", t.why},
                         {"period_s", c.period.value},
                         {"makespan_s", c.makespan.value},
                         {"throughput", c.throughput},
                         {"memory", c.memory.value},
                         {"filled", c.filled},
                         {"work_s", c.work.value},
                         {"energy_J", c.energy.value},
                         {"unexchanged", c.unexchanged.value},
                         {"weights", c.weights},
                         {"overlap", c.overlap},
                         {"plan", c.plan_words}};
  if (c.replayed)
    json["contended"] = JsonObject{{"period_s", c.replayed->period.value},
                                   {"makespan_s", c.replayed->makespan.value},
                                   {"why_not", c.replayed->why_not},
                                   {"energy_J", c.replayed->energy.value}};
  return json;
}

Trial trial_from(const Json& json) {
  Trial t;
  t.result = static_cast<TrialResult>(static_cast<int>(json.at("result").number()));
  t.why = json.at("why").text();
  Choice& c = t.choice;
  c.period = Seconds{json.at("period_s").number()};
  c.makespan = Seconds{json.at("makespan_s").number()};
  c.throughput = json.at("throughput").number();
  c.memory = Bytes{json.at("memory").number()};
  c.filled = json.at("filled").number();
  c.work = Seconds{json.at("work_s").number()};
  c.energy = Joules{json.at("energy_J").number()};
  c.unexchanged = Bytes{json.at("unexchanged").number()};
  c.weights = json.at("weights").text();
  c.overlap = json.at("overlap").text();
  c.plan_words = json.at("plan").text();
  if (const Json* contended = json.find("contended"))
    c.replayed =
        ContendedResult{Seconds{contended->at("makespan_s").number()}, Seconds{contended->at("period_s").number()},
                        contended->at("why_not").text(), Joules{contended->at("energy_J").number()}};
  return t;
}

Trial with_properties(Trial trial, const Combination& combination) {
  Choice c = combination.candidate->properties;
  const Choice& s = trial.choice;
  c.schedule = combination.policy.name();
  c.period = s.period, c.makespan = s.makespan, c.throughput = s.throughput, c.memory = s.memory;
  c.filled = s.filled, c.work = s.work, c.unexchanged = s.unexchanged, c.weights = s.weights;
  c.energy = s.energy, c.overlap = s.overlap, c.plan_words = s.plan_words;
  c.replayed = s.replayed;
  trial.choice = std::move(c);
  return trial;
}

Json json_of(const Candidate& candidate) {
  const Choice& c = candidate.properties;
  const PlanBound& b = candidate.bound;
  JsonObject devices_of_type;
  for (const auto& [type, count] : c.devices_of_type) devices_of_type.push_back({type, count});
  return JsonObject{{"devices", c.devices},
                    {"stages", c.stages},
                    {"replicas", c.replicas},
                    {"micro_batch_size", c.micro_batch_size},
                    {"micro_batches", c.micro_batches},
                    {"planner", c.planner},
                    {"placement", c.placement},
                    {"recompute", c.recompute},
                    {"group", c.group},
                    {"group_devices", c.group_devices},
                    {"plan", c.plan_words},
                    {"device_types", c.device_types},
                    {"devices_of_type", std::move(devices_of_type)},
                    {"period_s", c.period.value},
                    {"memory", c.memory.value},
                    {"bound_work_s", b.work.value},
                    {"bound_period_s", b.period.value},
                    {"bound_unsplit_s", b.unsplit.value},
                    {"bound_memory", b.memory.value},
                    {"fits", b.fits},
                    {"amount", c.amount},
                    {"amount_fixed", candidate.amount.fixed},
                    {"amount_per_second", candidate.amount.per_second},
                    {"flushes", candidate.flushes}};
}

Candidate candidate_from(const Json& json, const PlanVariant& variant) {
  const auto number = [&](const char* key) { return json.at(key).number(); };
  const auto count = [&](const char* key) { return static_cast<int>(number(key)); };
  Candidate candidate;
  candidate.variant = variant;
  Choice& c = candidate.properties;
  c.devices = count("devices"), c.stages = count("stages"), c.replicas = count("replicas");
  c.micro_batch_size = count("micro_batch_size"), c.micro_batches = count("micro_batches");
  c.planner = json.at("planner").text(), c.placement = json.at("placement").text();
  c.recompute = json.at("recompute").text(), c.group = json.at("group").text();
  c.plan_words = json.at("plan").text();
  c.group_devices = count("group_devices"), c.device_types = json.at("device_types").text();
  for (const auto& [type, number_of_type] : json.at("devices_of_type").members())
    c.devices_of_type[type] = static_cast<int>(number_of_type.number());
  c.period = Seconds{number("period_s")}, c.memory = Bytes{number("memory")};
  PlanBound& b = candidate.bound;
  b.work = Seconds{number("bound_work_s")}, b.period = Seconds{number("bound_period_s")};
  b.unsplit = Seconds{number("bound_unsplit_s")}, b.memory = Bytes{number("bound_memory")};
  c.amount = number("amount");
  candidate.amount = {number("amount_fixed"), number("amount_per_second")};
  b.fits = json.at("fits") == Json(true), candidate.flushes = json.at("flushes") == Json(true);
  return candidate;
}

}  // namespace stagecraft
