// Reads the `plan:` map of a scenario as typed options, writes them as text, and makes options for another planner from
// them.

#include "sim/planners/shared/plan_spec.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/enum_array.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/device_ranges.hpp"
#include "sim/planners/shared/group.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft {
namespace {

using config::Value;

/// A map with the default of every field that has one.
Value default_map(const config::MapSpec& spec) {
  Value map;
  map.kind = Value::Kind::Map;
  for (const config::Field& field : spec.fields)
    if (field.default_text) map.members.push_back({field.name, {}, Value::scalar(*field.default_text, {}, "default")});
  return map;
}

/// A list of stages belongs to the planner that reads it; the others have a number.
bool is_count(const Value& stages) { return stages.is_scalar(); }

bool needs_count(const PlannerDef& def) {
  const config::Field* stages = def.fields->find("stages");
  return stages && stages->required && stages->kind == config::Field::Kind::Integer;
}

}  // namespace

Where PlanSpec::where(std::string_view field) const {
  if (!source) return {};
  const Value* value = source->find(field);
  return value ? value->where : source->where;
}

StageShape PlanSpec::shape(int stage_count) const {
  StageShape shape;
  shape.degrees = group;
  shape.degrees.replicas = replicas;
  shape.degrees.order = order;
  shape.degrees.pipeline = stage_count;
  shape.sharding = sharding;
  shape.reshard = sharding == StateSharding::Weights && reshard.value_or(stage_count == 1);
  set_shard_within(shape, shard_within);
  shape.exchange = exchange;
  shape.dispatcher = dispatcher;
  shape.overlaps_shared = overlaps_shared;
  if (recompute) shape.recomputation = *recompute;
  if (recompute == Recomputation::Layers) shape.recomputed_layers = recompute_layers;
  return shape;
}

bool PlanSpec::has_micro_batch_size() const { return planner->fields->find("micro_batch_size") != nullptr; }

PlanSpec read_plan_spec(const Value& checked, const Cluster& cluster) {
  return read_plan_spec(get_from(planners::catalog(), "planner", checked.at("planner").text),
                        std::make_shared<const Value>(checked), cluster);
}

PlanSpec read_plan_spec(const PlannerDef& def, std::shared_ptr<const Value> checked, const Cluster& cluster) {
  PlanSpec spec;
  spec.planner = &def;
  const Value& map = *checked;
  const auto read = [&](const char* name, auto&& set) {
    if (const Value* value = map.find(name)) set(*value);
  };
  read("stages", [&](const Value& v) {
    if (is_count(v)) spec.stages = config::as_int(v);
  });
  read("replicas", [&](const Value& v) { spec.replicas = config::as_int(v); });
  read("micro_batch_size", [&](const Value& v) { spec.micro_batch_size = config::as_int(v); });
  read("group", [&](const Value& v) { read_group(v, spec); });
  read("shard", [&](const Value& v) { read_sharding(v, spec); });
  read("share", [&](const Value& v) { spec.share = parse_share(v.text); });
  if (spec.share == Share::Samples) spec.micro_batch_size *= spec.replicas;
  read("recompute", [&](const Value& v) { spec.recompute = read_recomputation(v); });
  read("recompute_layers", [&](const Value& v) { spec.recompute_layers = config::as_int(v); });
  read("placement", [&](const Value& v) { spec.placement = parse_placement(v.text); });
  read("vocabulary", [&](const Value& v) { spec.divides_vocabulary = v.text == "all"; });
  read("offload", [&](const Value& v) { spec.offload = read_offload(v); });
  read("sequential", [&](const Value& v) { spec.sequential = config::as_bool(v); });
  read("straight", [&](const Value& v) { spec.straight = config::as_bool(v); });
  read("memory", [&](const Value& v) { spec.memory = config::as_bytes(v); });
  read("bandwidth", [&](const Value& v) {
    if (v.is_scalar()) spec.bandwidth = config::as_bandwidth(v);
  });
  for (const char* effort : {"states", "steps"})
    read(effort, [&](const Value& v) { spec.effort = static_cast<std::int64_t>(config::as_real(v)); });
  read("devices", [&](const Value& v) {
    config::Problems problems;
    spec.devices = read_devices(v, cluster, "devices", problems);
    problems.throw_if_any();
  });
  if (def.read) spec.planner_options = def.read(map, cluster);
  spec.source = std::move(checked);
  return spec;
}

PlanSpec default_plan_spec(const PlannerDef& def, const Cluster& cluster) {
  PlanSpec spec = read_plan_spec(def, std::make_shared<const Value>(default_map(*def.fields)), cluster);
  spec.source = nullptr;
  return spec;
}

PlanSpec plan_spec_for(const PlannerDef& def, const PlanSpec& other, int stages, const Cluster& cluster,
                       const std::vector<std::string_view>& without) {
  if (other.group.divides() && !def.fields->find("group"))
    throw InputError(std::vector<Diagnostic>{no_groups(def, "group", other.where("group"))});
  if (other.sharding != StateSharding::None && !def.fields->find("shard"))
    throw InputError(std::vector<Diagnostic>{no_groups(def, "shard", other.where("shard"))});
  Value map;
  map.kind = Value::Kind::Map;
  for (const config::Member& m : other.source->members) {
    const bool written = m.value.origin.empty() && !(m.key == "stages" && !is_count(m.value));
    if (m.key == "planner" || !written || !def.fields->find(m.key)) continue;
    if (std::find(without.begin(), without.end(), m.key) != without.end()) continue;
    map.members.push_back(m);
    // A planner that chooses the replicas counts the samples of all of them.
    if (m.key == "micro_batch_size" && !def.fields->find("replicas"))
      map.members.back().value.text = fmt::format("{}", other.micro_batch_size);
  }
  if (needs_count(def) && !map.has("stages"))
    map.members.push_back({"stages", {}, Value::scalar(fmt::format("{}", stages), {}, "computed")});
  config::Problems problems;
  map = config::check(map, *def.fields, "plan", problems);
  problems.throw_if_any();
  PlanSpec spec = read_plan_spec(def, std::make_shared<const Value>(std::move(map)), cluster);
  spec.offload = other.offload;  // A field of all planners.
  return spec;
}

namespace {

/// Options without a member of PlanSpec that tells whether they were written.
std::string other_options_text(const PlanSpec& spec) {
  constexpr std::string_view kMembers[] = {"planner",   "stages",     "replicas",   "group",
                                           "shard",     "pipeline",   "chunks",     "recompute",
                                           "devices",   "memory",     "sequential", "micro_batch_size",
                                           "placement", "share",      "straight",   "states",
                                           "steps",     "vocabulary", "offload",    "recompute_layers"};
  std::string text;
  if (!spec.source) return text;
  for (const config::Member& m : spec.source->members)
    if (m.value.origin.empty() && std::find(std::begin(kMembers), std::end(kMembers), m.key) == std::end(kMembers))
      text += fmt::format(", {}: {}", m.key, config::to_set_text(m.value));
  return text;
}

}  // namespace

std::string to_text(const PlanSpec& spec, const Cluster& cluster) {
  const auto has = [&](const char* field) { return spec.planner->fields->find(field) != nullptr; };
  std::string text = fmt::format("{{planner: {}", spec.planner->name);
  if (has("micro_batch_size")) text += fmt::format(", micro_batch_size: {}", spec.written_micro_batch_size());
  if (has("recompute") && spec.recompute != default_plan_spec(*spec.planner, cluster).recompute)
    text += fmt::format(", recompute: {}", spec.recompute ? to_text(*spec.recompute) : std::string("auto"));
  if (spec.recompute_layers > 0) text += fmt::format(", recompute_layers: {}", spec.recompute_layers);
  if (spec.placement) text += fmt::format(", placement: {}", to_text(*spec.placement));
  if (spec.stages) text += fmt::format(", stages: {}", *spec.stages);
  if (has("replicas")) text += fmt::format(", replicas: {}", spec.replicas);
  text += group_text(spec);
  if (spec.devices) {
    std::vector<std::string> names;
    for (const std::string& name : device_ranges(*spec.devices, cluster)) names.push_back(fmt::format("\"{}\"", name));
    text += fmt::format(", devices: [{}]", join(names));
  }
  if (spec.memory && has("memory")) text += fmt::format(", memory: {:.0f} B", spec.memory->value);
  if (has("share") && spec.share != default_plan_spec(*spec.planner, cluster).share)
    text += fmt::format(", share: {}", spec.share == Share::Samples ? "samples" : "micro_batches");
  if (spec.divides_vocabulary && has("vocabulary")) text += ", vocabulary: all";
  if (spec.offload) text += fmt::format(", offload: {}", to_text(*spec.offload));
  if (spec.sequential && has("sequential")) text += ", sequential: true";
  if (spec.straight && has("straight")) text += ", straight: true";
  if (spec.effort) text += fmt::format(", {}: {}", has("states") ? "states" : "steps", *spec.effort);
  return text + other_options_text(spec) + "}";
}

}  // namespace stagecraft
