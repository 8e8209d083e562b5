// Reads a scenario: resolves references, applies overrides, checks every field, and settles what fields mean together.
// Also reads model and cluster files, and builds the ModelGraph and the Cluster of checked ones.

#include "sim/experiment/scenario.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/core.h>

#include "sim/cluster/change_fields.hpp"
#include "sim/cluster/generator.hpp"
#include "sim/cluster/host_memory.hpp"
#include "sim/config/override.hpp"
#include "sim/core/file.hpp"
#include "sim/core/sha256.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/curves.hpp"
#include "sim/experiment/micro_batch_sizes.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/pipeline_fields.hpp"
#include "sim/experiment/profiles.hpp"
#include "sim/experiment/references.hpp"
#include "sim/experiment/scenario_version.hpp"
#include "sim/experiment/settings.hpp"
#include "sim/experiment/simgrid_xml.hpp"
#include "sim/experiment/software.hpp"
#include "sim/model/builder.hpp"
#include "sim/planners/shared/group.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

/// The order itself takes the place of the file's name, so that a resolved scenario stands alone and its hash covers
/// the order. The file is searched for next to the file that names it.
void read_csv(Value& schedule, Problems& problems) {
  const Value* name = schedule.find("csv");
  if ((name == nullptr) != schedule.has("rows"))
    return problems.add(schedule.where, "run.schedule", "the order is needed once",
                        "write {csv: order.csv}, or rows: [...]", "missing-field");
  if (!name) return;
  const std::filesystem::path base =
      name->where.file.starts_with('<') ? "" : std::filesystem::path(name->where.file).parent_path();
  const std::string file = (base / name->text).lexically_normal().string();
  Value rows;
  rows.kind = Value::Kind::List;
  rows.where = {file, 1, 1};
  try {
    for (const std::string& line : split(read_file(file), '\n'))
      rows.items.push_back(
          Value::scalar(std::string(trim(line)), {file, static_cast<int>(rows.items.size()) + 1, 1}, "computed"));
  } catch (const InputError& e) {
    return problems.add(name->where, "run.schedule.csv", e.problems().front().message, {}, "unreadable-file");
  }
  while (!rows.items.empty() && rows.items.back().text.empty()) rows.items.pop_back();
  const auto at = std::find_if(schedule.members.begin(), schedule.members.end(),
                               [](const config::Member& m) { return m.key == "csv"; });
  *at = {"rows", at->where, std::move(rows)};
}

/// `auto` becomes the policy that the schedule goes with.
void settle_weights(Value& tree, const ScheduleDef& schedule, Problems& problems) {
  Value& weights = *tree.find("weights");
  Value& name = *weights.find("policy");
  if (name.text == "auto") name = Value::scalar(std::string(schedule.weights), name.where, "computed");
  const WeightsDef& policy = get_from(weights::catalog(), "weights policy", name.text);
  check_weights(policy, rule_of(policy, weights), schedule, tree.at("run").at("schedule"), name.where, problems);
}

constexpr std::int64_t kMostMicroBatches = 1 << 20;  // As in the field table.

/// The number of micro-batches follows from the samples of an iteration.
void settle_micro_batches(Value& tree, Problems& problems) {
  Value& run = *tree.find("run");
  const Value* batch = run.find("global_batch");
  const Value* count = run.find("micro_batches");
  if (!batch) {
    if (!count)
      problems.add(run.where, "run.micro_batches", "the field is missing", "write it, or global_batch: 512",
                   "missing-field");
    return;
  }
  const std::int64_t size = largest_micro_batch(tree.at("plan"));
  const std::int64_t samples = config::as_int(*batch);
  if (size == 0)
    return problems.add(batch->where, "run.global_batch",
                        "the planner chooses the samples of a micro-batch, so their number does not follow",
                        "write micro_batches", "global-batch");
  if (samples % size != 0)
    return problems.add(batch->where, "run.global_batch",
                        fmt::format("{} are no whole number of micro-batches of {}", pluralize(samples, "sample"),
                                    pluralize(size, "sample")),
                        fmt::format("a multiple of {}", size), "global-batch");
  if (count && config::as_int(*count) != samples / size)
    return problems.add(
        count->where, "run.micro_batches",
        fmt::format("{} of {} make {}, but global_batch is {}", pluralize(config::as_int(*count), "micro-batch", "es"),
                    size, pluralize(config::as_int(*count) * size, "sample"), samples),
        "give one of them", "global-batch");
  if (samples / size > kMostMicroBatches)
    return problems.add(
        batch->where, "run.global_batch",
        fmt::format("{} are {} micro-batches of {}", pluralize(samples, "sample"), samples / size, size),
        fmt::format("at most {} micro-batches", kMostMicroBatches), "global-batch");
  if (count) return;
  // Before global_batch, in the order of the field table, so that the resolved text reads back as the same scenario.
  const auto at = std::find_if(run.members.begin(), run.members.end(),
                               [](const config::Member& m) { return m.key == "global_batch"; });
  const Where where = batch->where;
  run.members.insert(at, {"micro_batches", where, Value::scalar(fmt::format("{}", samples / size), where, "computed")});
}

/// A device of the model may stand for several GPUs already, as far as memory is concerned.
void check_divided_once(const Value& tree, Problems& problems) {
  const Value* divided = tree.at("model").find("tensor_parallel");
  const Value* group = tree.at("plan").find("group");
  if (divided && group && config::as_int(*divided) > 1 && config::as_int(group->at("tensor")) > 1)
    problems.add(divided->where, "model.tensor_parallel",
                 "plan.group divides the layers, and the model has divided their memory already",
                 "write plan.group.tensor alone", "group");
}

/// Most planners know no groups of devices; check() would only say that they have no such field.
void refuse_groups(Value& tree, Problems& problems) {
  Value* plan = tree.find("plan");
  const Value* name = plan ? plan->find("planner") : nullptr;
  const PlannerDef* def = name && name->is_scalar() ? find_in(planners::catalog(), name->text) : nullptr;
  if (!def) return;
  for (const std::string option : {"group", "shard"}) {
    const Value* value = plan->find(option);
    if (!value || def->fields->find(option)) continue;
    const Diagnostic d = no_groups(*def, option, value->where);
    problems.add(d.where, d.path, d.message, d.help, d.code);
    std::erase_if(plan->members, [&](const config::Member& m) { return m.key == option; });
  }
}

Value load_part(const std::string& file, FileKind kind, const char* key, const config::MapSpec& spec) {
  Problems problems;
  Value root = config::parse_yaml_file(file, problems);
  problems.throw_if_any();
  check_schema_line(root, key, problems);
  problems.throw_if_any();
  if (!root.has("name"))
    root.members.push_back(
        {"name", root.where, Value::scalar(std::filesystem::path(file).stem().string(), root.where, "computed")});
  expand_reference(root, kind, key, problems);
  Value wrapped;
  wrapped.kind = Value::Kind::Map;
  wrapped.where = root.where;
  wrapped.members.push_back({key, root.where, std::move(root)});
  wrapped = config::check(wrapped, spec, "", problems);
  problems.throw_if_any();
  if (kind == FileKind::Cluster) expand_platform(*wrapped.find(key), problems);
  if (kind == FileKind::Cluster) expand_curves(*wrapped.find(key), problems);
  problems.throw_if_any();
  return wrapped.at(key);
}

/// The fields of the variant that a map picks, or null.
const config::MapSpec* variant_fields(const config::Field& f, const Value& map) {
  const Value* word = map.find(f.selector);
  if (!word) return nullptr;
  for (const config::Variant& variant : f.variants())
    if (variant.name == word->text) return variant.fields;
  return nullptr;
}

/// A bare word is short for a map with the selector alone.
Value map_with(const std::string& key, Value word) {
  Value map;
  map.kind = Value::Kind::Map;
  map.where = word.where;
  map.members.push_back({key, word.where, std::move(word)});
  return map;
}

/// "report.trace=false", "run.gpu.messages=nccl" and "plan.group.tensor=8" are about parts that the file may leave out.
void add_parts_of(std::string_view path, const Where& where, const config::MapSpec& spec, Value& tree) {
  for (const config::Field& f : spec.fields) {
    if (!path.starts_with(f.name + ".")) continue;
    const std::string_view rest = path.substr(f.name.size() + 1);
    if (f.kind == config::Field::Kind::Variant) {
      Value* const part = tree.find(f.name);
      if (part && part->is_scalar() && f.map && !f.by_reference) *part = map_with(f.selector, *part);
      const config::MapSpec* fields = part && part->is_map() ? variant_fields(f, *part) : nullptr;
      if (fields) add_parts_of(rest, where, *fields, *part);
      if (part && part->is_map() && f.map) add_parts_of(rest, where, *f.map, *part);
    }
    if (f.kind != config::Field::Kind::Map) continue;
    if (!f.required && !tree.has(f.name)) {
      Value part;
      part.kind = Value::Kind::Map;
      part.where = where;
      tree.members.push_back({f.name, where, std::move(part)});
    }
    if (Value* const part = tree.find(f.name); part && part->is_map()) add_parts_of(rest, where, *f.map, *part);
  }
}

/// What a base and its override describe is one map when options are applied: "cluster.override.nodes" is its "nodes".
config::Member without_override(config::Member set) {
  for (const std::string part : {"model.", "cluster."})
    if (const std::string below = part + "override."; set.key.starts_with(below))
      set.key = part + set.key.substr(below.size());
  return set;
}

void apply(const config::Member& written, bool keeps_options, Value& tree, Problems& problems) {
  const config::Member set = without_override(written);
  if (Value* model = tree.find("model"); model && model->is_map() && set.key.starts_with("model.")) drop_facts(*model);
  const std::string dropped = drop_other_form(tree, set.key, keeps_options);
  add_parts_of(set.key, set.where, scenario_fields(), tree);
  const config::Field* field = config::field_at(scenario_fields(), tree, set.key);
  Value value = config::list_if_needed(set.value, field, tree, set.key, problems);
  if (set.key == "plan.stages" && value.is_scalar()) value.origin = dropped;
  config::set_path(tree, set.key, std::move(value), set.where, problems);
  // A reference may come with an override as well.
  if (set.key == "model") expand_reference(*tree.find("model"), FileKind::Model, "model", problems);
  if (set.key == "cluster") expand_reference(*tree.find("cluster"), FileKind::Cluster, "cluster", problems);
}

}  // namespace

std::string Scenario::hash() const { return sha256(config::to_yaml(tree, false)); }

Value scenario_tree(const std::string& file, Problems& problems) {
  Problems unreadable;
  Value tree = config::parse_yaml_file(file, unreadable);
  unreadable.throw_if_any();
  // Everything else that is wrong is reported too, unless it is a file of Hugging Face.
  if (tree.is_map() && !tree.has("schema") && !tree.has("model_type")) {
    check_schema_line(tree, "scenario", problems);
    tree.members.insert(tree.members.begin(),
                        {"schema", tree.where, Value::scalar("scenario/2", tree.where, "computed")});
  }
  check_schema_line(tree, "scenario", unreadable);
  unreadable.throw_if_any();
  if (Value* model = tree.find("model")) expand_reference(*model, FileKind::Model, "model", problems);
  if (Value* cluster = tree.find("cluster")) expand_reference(*cluster, FileKind::Cluster, "cluster", problems);
  return tree;
}

Value checked_scenario(Value tree, const std::vector<config::Member>& overrides, Problems& problems) {
  bool are_chosen = false;  // with_chosen_options() has options that may replace others after the version.
  for (const config::Member& set : overrides) {
    if (set.key == "schema" && !to_newest_form(tree, problems))
      problems.add(set.where, "schema", "a file with problems cannot become one of another version", "correct the file",
                   "schema");
    are_chosen = are_chosen || set.key == "schema";
    apply(set, !are_chosen, tree, problems);
  }
  to_newest_form(tree, problems);
  refuse_groups(tree, problems);
  tree = config::check(tree, scenario_fields(), "", problems);
  if (Value* profile = tree.find("profile")) expand_profile(*profile, problems);
  if (Value* cluster = tree.find("cluster")) expand_curves(*cluster, problems);
  return tree;
}

Scenario settled_scenario(Value tree) {
  Problems problems;
  Value& schedule = *tree.find("run")->find("schedule");
  if (schedule.at("name").text == "csv") read_csv(schedule, problems);
  expand_platform(*tree.find("cluster"), problems);
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", schedule.at("name").text);
  settle_weights(tree, def, problems);
  settle_pipeline(tree, problems);
  if (!settle_packs(tree, problems)) settle_micro_batches(tree, problems);
  settle_software(tree, problems);
  problems.throw_if_any();
  settle_attention(tree);
  check_divided_once(tree, problems);
  const Value& iterations = tree.at("run").at("iterations");
  check_iterations(config::as_int(iterations), def, schedule, iterations.where, problems);
  problems.throw_if_any();
  static_cast<void>(read_settings(tree));
  return {std::move(tree)};
}

Scenario load_scenario(const std::string& given, const std::vector<std::string>& sets) {
  Problems problems;
  Value tree = scenario_tree(scenario_file(given), problems);
  std::vector<config::Member> overrides;
  for (const std::string& set : sets)
    if (auto read = config::read_assignment("--set", set, problems)) overrides.push_back(std::move(*read));
  tree = checked_scenario(std::move(tree), overrides, problems);
  problems.throw_if_any();
  return settled_scenario(std::move(tree));
}

Value checked_field(const std::string& path, Value value) {
  const config::MapSpec* spec = &scenario_fields();
  std::string prefix;
  const std::vector<std::string> keys = split(path, '.');
  for (std::size_t k = 0; k + 1 < keys.size(); ++k) {
    spec = spec->find(keys[k])->map;
    prefix += (k > 0 ? "." : "") + keys[k];
  }
  const config::MapSpec one{"One field.", {*spec->find(keys.back())}};
  Value map;
  map.kind = Value::Kind::Map;
  map.members.push_back({keys.back(), value.where, std::move(value)});
  Problems problems;
  map = config::check(map, one, prefix, problems);
  problems.throw_if_any();
  return std::move(map.members.front().value);
}

void check_weights(const WeightsDef& policy, const WeightsRule& rule, const ScheduleDef& schedule, const Value& options,
                   const Where& where, Problems& problems) {
  const int every = drain_every(schedule, &options);
  const Value* update = options.find("update");
  const bool often = update && update->text == "micro_batch";  // Weights change while others are under way.
  if (policy.needs_flush && every == 1 && often)
    problems.add(where, "weights",
                 fmt::format("'{}' keeps one version, but with update: micro_batch the schedule '{}' changes weights "
                             "while micro-batches are under way",
                             policy.name, schedule.name),
                 fmt::format("write weights: {}, or update: iteration", schedule.weights), "weights");
  if (policy.needs_flush && every != 1)
    problems.add(where, "weights",
                 fmt::format("'{}' keeps one version, but the schedule '{}' {}", policy.name, schedule.name,
                             every == 0 ? "never drains the pipeline" : "does not drain the pipeline every iteration"),
                 fmt::format("write weights: {}", schedule.weights), "weights");
  if (rule.assumes_staleness() && every == 1 && !often)
    problems.add(
        where, "weights",
        fmt::format("'{}' looks as far ahead as if the pipeline never drained, but the schedule '{}' drains it "
                    "every iteration, so that no weights are old",
                    policy.name, schedule.name),
        "write schedule: pipedream, or weights: flush", "weights");
}

void check_iterations(int iterations, const ScheduleDef& schedule, const Value& options, const Where& where,
                      Problems& problems) {
  const bool drains = schedule.trains && drain_every(schedule, &options) == 1;
  if (drains || iterations >= 3 || (iterations == 1 && schedule.flushes)) return;
  problems.add(where, "run.iterations",
               fmt::format("the schedule '{}' does not drain every iteration, so the time of one more does not "
                           "follow from {}",
                           schedule.name, pluralize(iterations, "iteration")),
               schedule.flushes ? "write 1, or 3 or more" : "write 3 or more", "iterations");
}

Value load_model_file(const std::string& file) { return load_part(file, FileKind::Model, "model", model_fields()); }
Value load_cluster_file(const std::string& file) {
  return load_part(file, FileKind::Cluster, "cluster", cluster_fields());
}

namespace {

void check_fact(const Value& fact, const std::string& path, double built, double tolerance, const char* what) {
  const double expected = config::as_real(fact);
  if (std::abs(built - expected) <= tolerance * expected) return;
  throw InputError(
      {{fact.where, path, fmt::format("the model has {:.0f} {}, not {}", built, what, fact.text), {}, "expect"}});
}

/// Published numbers of parameters are exact or nearly so; those that work on a token are rounded to two digits.
void check_facts(const Value& expect, const ModelGraph& graph) {
  const Value* embedding = expect.find("active_embedding");
  if (const Value* fact = expect.find("parameters"))
    check_fact(*fact, "expect.parameters", graph.parameters(), 1e-3, "parameters");
  if (const Value* fact = expect.find("active_parameters"))
    check_fact(*fact, "expect.active_parameters", active_parameters(graph, embedding && config::as_bool(*embedding)),
               0.03, "active parameters");
}

}  // namespace

namespace {

/// A model or cluster that has no name is called by what builds it.
std::string name_of(const Value& checked, const char* builder, const char* fallback) {
  const std::string& name = checked.at("name").text;
  return name == fallback ? checked.at(builder).text : name;
}

}  // namespace

ModelGraph build_model(const Value& checked) {
  const ModelBuilder& builder = get_from(model_builders::catalog(), "model builder", checked.at("builder").text);
  ModelGraph graph = builder.build(checked);
  graph.name = name_of(checked, "builder", "model");
  check_graph(graph);
  if (const Value* expect = checked.find("expect")) check_facts(*expect, graph);
  return graph;
}

Cluster build_cluster(const Value& checked) {
  const TopologyGenerator& generator =
      get_from(topology_generators::catalog(), "topology", checked.at("generator").text);
  Cluster cluster = generator.build(checked);
  cluster.name = name_of(checked, "generator", "cluster");
  read_host_memory(checked, cluster);
  read_changes(checked, cluster);
  return cluster;
}

}  // namespace stagecraft
