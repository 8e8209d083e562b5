// Answers of `serve` about scenarios: load, check and run, also with stages and an order that functions of the client
// give.

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/config/library.hpp"
#include "sim/config/override.hpp"
#include "sim/diagnosis/diagnose.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/scenario_version.hpp"
#include "sim/output/text.hpp"
#include "sim/published/error_classes.hpp"
#include "tools/stagecraft/check_input.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/run_folder.hpp"
#include "tools/stagecraft/serve/session.hpp"

namespace stagecraft::serve {
namespace {

using config::Value;

Value list_of(const std::vector<std::string>& words, const Where& where) {
  Value list;
  list.kind = Value::Kind::List;
  list.where = where;
  for (const std::string& word : words) list.items.push_back(Value::scalar(word, where));
  return list;
}

Value map_at(const Where& where) {
  Value map;
  map.kind = Value::Kind::Map;
  map.where = where;
  return map;
}

void add_member(Value& map, const char* key, Value value) { map.members.push_back({key, map.where, std::move(value)}); }

/// The `plan:` map of stages that a function lists, with the places of its lines.
Value plan_of(const Parameters& plan, const PlanSpec& written) {
  const Where where{plan.text("file"), plan.whole("line", 0), 1};
  Value stages = map_at(where);
  stages.kind = Value::Kind::List;
  for (const Json& item : plan.items("stages")) {
    const Parameters stage(item, "stages");
    Value map = map_at({where.file, stage.whole("line", where.line), 1});
    if (stage.has("name")) add_member(map, "name", Value::scalar(stage.text("name"), map.where));
    add_member(map, "layers", list_of(stage.texts("layers"), map.where));
    add_member(map, "devices", list_of(stage.texts("devices"), map.where));
    const int size = stage.whole("micro_batch_size", written.written_micro_batch_size());
    add_member(map, "micro_batch_size", Value::scalar(std::to_string(size), map.where));
    stages.items.push_back(std::move(map));
  }
  Value value = map_at(where);
  add_member(value, "planner", Value::scalar("explicit", where));
  add_member(value, "stages", std::move(stages));
  return value;
}

Experiment with_stages(const Parameters& p, const Json& plan, const PlanSpec& written,
                       const std::vector<std::string>& sets) {
  config::Problems problems;
  Value tree = scenario_tree(scenario_file(p.text("file")), problems);
  std::vector<config::Member> overrides;
  for (const std::string& set : with_chosen_options(sets, {}))
    if (auto read = config::read_assignment("--set", set, problems)) overrides.push_back(std::move(*read));
  Value value = plan_of(Parameters(plan, "plan"), written);
  const Where where = value.where;
  overrides.push_back({"plan", where, std::move(value)});
  tree = checked_scenario(std::move(tree), overrides, problems);
  problems.throw_if_any();
  return read_experiment(settled_scenario(std::move(tree)));
}

JsonArray layers_of(const Experiment& e) {
  JsonArray layers;
  const double samples = e.plan.micro_batch_size;
  for (const LayerId l : e.model->layers.ids()) {
    const Layer& layer = e.model->layers[l];
    JsonObject times;
    for (const DeviceTypeId t : e.cluster->types.ids()) {
      const LayerCost cost = e.costs->at(l, t, whole_samples(samples));
      times.push_back({e.cluster->types[t].name,
                       JsonArray{cost.forward.value, cost.input_gradient.value, cost.weight_gradient.value}});
    }
    layers.push_back(JsonObject{{"name", layer.name},
                                {"type", layer.type},
                                {"parameters", layer.parameters},
                                {"output_bytes", layer.output.value},
                                {"times", std::move(times)}});
  }
  return layers;
}

JsonArray devices_of(const Cluster& cluster) {
  JsonArray devices;
  for (const Device& device : cluster.devices)
    devices.push_back(JsonObject{{"name", device.name},
                                 {"type", cluster.types[device.type].name},
                                 {"host", device.host},
                                 {"memory_bytes", cluster.types[device.type].usable_memory().value}});
  return devices;
}

/// Whether one of the assignments gives a field of `section`, such as "plan.", a value.
bool assigns(const std::vector<std::string>& sets, std::string_view section) {
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) { return set.starts_with(section); });
}

/// Reads the scenario with the suggestions of a diagnosis. The stages of a function replace the whole plan, so no
/// suggestion changes them. A suggested schedule takes the place of the function's order.
ScenarioReader reader_of(const Parameters& p, const FunctionOrder* order, const ScenarioReader& read) {
  return [=, &p](const std::vector<std::string>& sets) {
    if (p.has("plan") && assigns(sets, "plan.")) throw InputError("a function gives the plan", "change the function");
    const bool keeps_order = order != nullptr && !assigns(sets, "run.schedule");
    if (!p.has("plan")) return keeps_order ? with_order(read(sets), spec_of(*order), weights_spec("auto")) : read(sets);
    std::vector<std::string> all_sets = p.texts("sets");
    all_sets.insert(all_sets.end(), sets.begin(), sets.end());
    const Experiment e = with_stages(p, *p.find("plan"), read(sets).plan, all_sets);
    return keeps_order ? with_order(e, spec_of(*order), weights_spec("auto")) : e;
  };
}

}  // namespace

/// The catalog does not have the schedule, so its `run.schedule` map has only its name.
ScheduleSpec spec_of(const FunctionOrder& order) {
  Value options = map_at(order.where);
  add_member(options, "name", Value::scalar(order.name, order.where));
  return {&order.def, std::make_shared<const Value>(std::move(options))};
}

Experiment read_asked_experiment(const Parameters& p, const FunctionOrder* order) {
  Experiment e = load_experiment(p.text("file"), p.texts("sets"));
  if (const Json* plan = p.find("plan")) e = with_stages(p, *plan, e.plan, p.texts("sets"));
  if (order) e = with_order(e, spec_of(*order), weights_spec("auto"));
  return e;
}

Json answer_load(Session&, const Parameters& p) {
  const Experiment e = load_experiment(p.text("file"), p.texts("sets"));
  JsonObject result{{"title", e.title},
                    {"model", e.model->name},
                    {"cluster", e.cluster->name},
                    {"schedule", e.schedule.name()},
                    {"planner", e.plan.planner->name},
                    {"weights", e.weights.name()},
                    {"micro_batches", e.run.micro_batches},
                    {"micro_batch_size", e.plan.written_micro_batch_size()},
                    {"iterations", e.run.lowering.iterations},
                    {"parameters", e.model->parameters()},
                    {"hash", e.scenario_hash},
                    {"yaml", config::to_yaml(*e.source, true)}};
  if (e.plan.stages) result.push_back({"stages", *e.plan.stages});
  if (p.flag("details", false)) {
    result.push_back({"layers", layers_of(e)});
    result.push_back({"devices", devices_of(*e.cluster)});
  }
  return result;
}

Json answer_check(Session&, const Parameters& p) {
  InputProblems all_problems;
  JsonArray good;
  for (const std::string& file : p.texts("files")) {
    try {
      const CheckedInput checked = check_input(file, p.texts("sets"));
      good.push_back(JsonObject{{"file", file}, {"summary", checked.summary}, {"notes", checked.notes}});
    } catch (const InputError& e) {
      all_problems.add(e);
    } catch (const Infeasible& e) {
      all_problems.add(e, file);
    }
  }
  return JsonObject{{"good", std::move(good)},
                    {"problems", problems_list(all_problems.problems)},
                    {"text", all_problems.problems.empty() ? "" : render(all_problems.problems)},
                    {"exit_code", all_problems.exit_code}};
}

Json answer_run(Session& session, const Parameters& p) {
  std::string backend = p.text("backend");
  if (!backend.empty()) get_from(backends::catalog(), "backend", backend);
  const std::unique_ptr<FunctionOrder> order = read_order(session, p);
  const OrderScope scope(order.get());
  auto run = std::make_unique<ServedRun>();
  run->compiled = compile(read_asked_experiment(p, order.get()));
  if (backend.empty()) backend = default_backend(run->compiled->plan, run->compiled->cluster());
  run->outcome = stagecraft::run(*run->compiled, backend);
  run->title = run->compiled->experiment.title;
  add_interval(*run->compiled, run->outcome);
  if (p.flag("diagnose", true)) {
    const ScenarioReader read = scenario_reader(p.text("file"), p.texts("sets"), run->compiled->experiment);
    run->outcome.report.diagnosis = diagnose(*run->compiled, run->outcome, backend, reader_of(p, order.get(), read));
  }
  const std::vector<std::string> notes = remarks(*run->compiled);
  Json results = *Json::parse(results_of(*run->compiled, run->outcome));
  Json result = keep_run(session, std::move(run), std::move(results), p.flag("memory", true));
  result["notes"] = Json(notes);
  return result;
}

}  // namespace stagecraft::serve
