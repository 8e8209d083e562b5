// The fields `plan.pipeline` and `plan.chunks` of a scenario: what they say of `plan.stages`, and refusals where the
// three disagree.

#include "sim/experiment/pipeline_fields.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/experiment/stages_of_schedule.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

const std::string kInPlaceOf = "in place of ";  ///< Origin of stages that an option has, and what it takes away.

/// A whole number of an unchecked scenario.
std::optional<int> number_of(const Value* value) {
  if (!value || !value->is_scalar()) return {};
  std::string_view rest = value->text;
  const std::optional<int> number = read_number(rest);
  return rest.empty() && number && *number > 0 ? number : std::nullopt;
}

/// The name of the schedule and its options, or null, of an unchecked scenario.
const ScheduleDef* schedule_of(const Value& tree) {
  const Value* run = tree.find("run");
  const Value* schedule = run && run->is_map() ? run->find("schedule") : nullptr;
  const Value* name = schedule && schedule->is_map() ? schedule->find("name") : schedule;
  return name && name->is_scalar() ? find_in(schedules::catalog(), name->text) : nullptr;
}

/// Numbers of stages on each rank that the schedule and the plan allow.
PlacementRule placing_of(const Value& tree, const ScheduleDef& def) {
  const Value* schedule = tree.find("run")->find("schedule");
  PlacementRule placing{def.placement, def.chunks, def.turn};
  const Value* asked = schedule->is_map() ? schedule->find("placement") : nullptr;
  if (!asked && placing.placement == Placement::Any) asked = tree.find("plan")->find("placement");
  const auto placement = asked && asked->is_scalar() ? parse_placement(asked->text) : std::nullopt;
  if (placement) placing.placement = *placement, placing.chunks = chunks_of(*placement);
  // A stage and a copy of another one are on each rank, and a plan counts them once.
  if (placing.placement == Placement::Bidirectional) placing.chunks = {1, 1};
  return placing;
}

const Value* chunks_of_schedule(const Value& tree) {
  const Value* schedule = tree.find("run")->find("schedule");
  return schedule->is_map() ? schedule->find("chunks") : nullptr;
}

bool has_stage_count(const Value& plan) {
  const Value* name = plan.find("planner");
  const PlannerDef* def = name && name->is_scalar() ? find_in(planners::catalog(), name->text) : nullptr;
  const config::Field* stages = def ? def->fields->find("stages") : nullptr;
  return stages && stages->kind == config::Field::Kind::Integer;
}

/// Puts a computed number after the planner, where the field table has it.
void insert(Value& plan, const char* key, std::int64_t number, const char* after) {
  const auto at = std::find_if(plan.members.begin(), plan.members.end(), [&](const auto& m) { return m.key == after; });
  const Where where = at->where;
  plan.members.insert(std::next(at), {key, where, Value::scalar(fmt::format("{}", number), where, "computed")});
}

void refuse(const Value& value, const char* path, std::string message, std::string help, Problems& problems) {
  problems.add(value.where, path, std::move(message), std::move(help), "pipeline");
}

/// " (<--set plan.pipeline=4>)": the place of a value that another one contradicts, unless both are in one file.
std::string elsewhere(const Value& value, const Value& other) {
  const Where& where = value.where;
  if (where.file == other.where.file) return {};
  return where.file.starts_with('<') ? fmt::format(" ({})", where.file)
                                     : fmt::format(" ({}:{})", where.file, where.line);
}

/// Chunks of a plan that has stages and pipeline ranks alone.
void add_chunks(Value& tree, const ScheduleDef& def) {
  Value& plan = *tree.find("plan");
  const Value *ranks = plan.find("pipeline"), *stages = plan.find("stages");
  if (!ranks || !stages || !stages->is_scalar() || plan.has("chunks") || chunks_of_schedule(tree)) return;
  const int count = config::as_int(*stages), each = config::as_int(*ranks);
  const PlacementRule placing = placing_of(tree, def);
  if (placing.placement != Placement::Bidirectional && count % each == 0 && placing.chunks.has(count / each))
    insert(plan, "chunks", count / each, "pipeline");
}

/// The chunks that the schedule has, from the plan where the schedule does not say them.
void settle_chunks(Value& tree, const ScheduleDef& def, Problems& problems) {
  Value& schedule = *tree.find("run")->find("schedule");
  const Value* written = tree.at("plan").find("chunks");
  const Value* of_schedule = schedule.find("chunks");
  if (!written) return;
  if (of_schedule && config::as_int(*of_schedule) != config::as_int(*written))
    return refuse(*written, "plan.chunks",
                  fmt::format("plan.chunks is {}, and run.schedule.chunks {}", written->text, of_schedule->text),
                  "give one of them", problems);
  if (!placing_of(tree, def).chunks.has(config::as_int(*written)))
    return refuse(*written, "plan.chunks",
                  fmt::format("the schedule '{}' cannot have {} on each rank", def.name,
                              pluralize(config::as_int(*written), "stage")),
                  def.chunks.max == 1 ? "run.schedule: interleaved" : "stagecraft explain " + std::string(def.name),
                  problems);
  if (of_schedule || !def.fields || !def.fields->find("chunks")) return;
  // In the order of the field table, so that the resolved text reads back as the same scenario.
  std::size_t at = 1;
  for (const config::Field& f : def.fields->fields) {
    if (f.name == "chunks") break;
    if (at < schedule.members.size() && schedule.members[at].key == f.name) ++at;
  }
  schedule.members.insert(schedule.members.begin() + at,
                          {"chunks", written->where, Value::scalar(written->text, written->where, "computed")});
}

}  // namespace

void add_stages(Value& tree) {
  Value* plan = tree.find("plan");
  if (!plan || !plan->is_map()) return;
  if (!plan->has("pipeline")) return;
  // An earlier reading, before other options, may have computed them.
  std::erase_if(plan->members, [](const auto& m) { return m.key == "stages" && m.value.origin == "computed"; });
  if (!plan->has("planner"))
    plan->members.insert(
        plan->members.begin(),
        {"planner", plan->where, Value::scalar(plan->has("layout") ? "layout" : "balanced", plan->where, "computed")});
  const std::optional<int> ranks = number_of(plan->find("pipeline"));
  const ScheduleDef* def = schedule_of(tree);
  if (!ranks || !def || plan->has("stages") || !has_stage_count(*plan)) return;
  const std::optional<int> in_plan = number_of(plan->find("chunks")), in_schedule = number_of(chunks_of_schedule(tree));
  const PlacementRule placing = placing_of(tree, *def);
  const int chunks = placing.placement == Placement::Bidirectional ? 1
                     : in_plan                                     ? *in_plan
                                                                   : in_schedule.value_or(placing.chunks.min);
  insert(*plan, "stages", std::int64_t{*ranks} * chunks, "pipeline");
}

void settle_pipeline(Value& tree, Problems& problems) {
  Value& plan = *tree.find("plan");
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", tree.at("run").at("schedule").at("name").text);
  add_chunks(tree, def);
  settle_chunks(tree, def, problems);
  const Value* stages = plan.find("stages");
  if (!stages || !stages->is_scalar()) return;
  const int count = config::as_int(*stages);
  const PlacementRule placing = placing_of(tree, def);
  const Value* given = chunks_of_schedule(tree);
  const bool both_ways = placing.placement == Placement::Bidirectional;
  std::optional<int> chunks;
  if (given && !both_ways) chunks = config::as_int(*given);
  if (!chunks && placing.chunks.min == placing.chunks.max) chunks = placing.chunks.min;
  if (const Value* ranks = plan.find("pipeline")) {
    const Value* written = plan.find("chunks");
    if (!chunks) chunks = written ? config::as_int(*written) : count / std::max(1, config::as_int(*ranks));
    if (std::int64_t{config::as_int(*ranks)} * *chunks != count)
      return refuse(*stages, "plan.stages",
                    fmt::format("{} of {} are {}, and plan.stages is {}: stages are pipeline x chunks{}",
                                pluralize(config::as_int(*ranks), "pipeline rank"), pluralize(*chunks, "chunk"),
                                pluralize(std::int64_t{config::as_int(*ranks)} * *chunks, "stage"), count,
                                elsewhere(*ranks, *stages)),
                    "give pipeline and chunks, or stages", problems);
  }
  if (!chunks || count % *chunks != 0) return;
  if (!plan.has("pipeline")) insert(plan, "pipeline", count / *chunks, "planner");
  if (!plan.has("chunks")) insert(plan, "chunks", *chunks, "pipeline");
}

void check_pipeline(const PlannedExperiment& p) {
  const Value* ranks = p.experiment.source ? p.experiment.source->at("plan").find("pipeline") : nullptr;
  if (!ranks || !ranks->origin.empty() || p.experiment.plan.source == nullptr) return;
  const int there = pipeline_ranks(p.plan);
  if (there == config::as_int(*ranks)) return;
  throw InputError({{ranks->where, "plan.pipeline",
                     fmt::format("the plan has {}, not {}", pluralize(there, "pipeline rank"), ranks->text),
                     "leave it out, or change the plan or run.schedule.chunks", "pipeline"}});
}

std::string drop_other_form(Value& tree, std::string_view option, bool keeps_options) {
  Value* plan = tree.find("plan");
  if (!plan || !plan->is_map()) return {};
  std::string dropped;
  const auto drop = [&](std::string_view key) {
    std::erase_if(plan->members, [&](const config::Member& m) {
      if (m.key != key || !m.value.is_scalar()) return false;
      if (keeps_options && m.value.where.file.starts_with(fmt::format("<--set plan.{}=", key))) return false;
      if (m.value.origin.empty()) dropped += fmt::format("{}{} {}", dropped.empty() ? "" : " x ", key, m.value.text);
      return true;
    });
  };
  if (option == "plan.stages") {
    if (plan->has("pipeline") && !plan->has("planner"))
      plan->members.insert(plan->members.begin(),
                           {"planner", plan->where, Value::scalar("balanced", plan->where, "computed")});
    drop("pipeline"), drop("chunks");
  }
  if (option == "plan.pipeline" || (option == "plan.chunks" && plan->has("pipeline"))) drop("stages");
  return dropped.empty() ? "" : kInPlaceOf + dropped;
}

std::vector<std::string> pipeline_notes(const Value& tree) {
  const Value* stages = tree.at("plan").find("stages");
  if (!stages || !stages->is_scalar() || !stages->origin.starts_with(kInPlaceOf)) return {};
  return {fmt::format("plan.stages: {} is {}; stages are pipeline x chunks, and plan.stages counts all of them",
                      stages->text, stages->origin)};
}

}  // namespace stagecraft
