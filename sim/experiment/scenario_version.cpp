// Turns older forms of a scenario into the newest one, so that all other code knows only that.

#include "sim/experiment/scenario_version.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/text.hpp"
#include "sim/experiment/micro_batch_sizes.hpp"
#include "sim/experiment/pipeline_fields.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/software.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

constexpr const char* kFirst = "scenario/1";
constexpr const char* kSecond = "scenario/2";
constexpr const char* kOldName = "formerly group";

void rename_consecutive(Value& stage) {
  for (config::Member& m : stage.members)
    if (m.key == "group" && m.value.is_scalar()) m.key = "consecutive", m.value.origin = kOldName;
}

void rename_old_fields(Value& scenario) {
  Value* plan = scenario.find("plan");
  Value* stages = plan ? plan->find("stages") : nullptr;
  if (!stages) return;
  for (Value& stage : stages->items) rename_consecutive(stage);
  for (config::Member& stage : stages->members) rename_consecutive(stage.value);
}

/// Divides the samples of all replicas together among them. What is not written is one sample.
void divide_size(Value& part, const std::string& path, int replicas, Problems& problems) {
  Value* size = part.find("micro_batch_size");
  const int samples = size ? config::as_int(*size) : 1;
  if (samples % replicas != 0)
    return problems.add(size ? size->where : part.where, path + ".micro_batch_size",
                        fmt::format("{} of all replicas together cannot be divided by {}, and scenario/2 counts the "
                                    "samples of one replica",
                                    pluralize(samples, "sample"), pluralize(replicas, "replica")),
                        fmt::format("a multiple of {}", replicas), "micro-batch-size");
  size->text = fmt::format("{}", samples / replicas);
  size->origin = "computed";
}

void divide_sizes(Value& plan, const std::vector<int>& replicas, Problems& problems) {
  const std::vector<Value*> parts = sized_parts(plan);
  for (std::size_t p = 0; p < parts.size(); ++p)
    if (replicas[p] > 1)
      divide_size(*parts[p], parts[p] == &plan ? "plan" : fmt::format("plan.stages[{}]", p), replicas[p], problems);
}

}  // namespace

config::Field schema_field() {
  return config::choice("schema", std::vector<std::string>{kFirst, kSecond})
      .doc(
          "Kind and version of the file. A scenario/1 is read as a scenario/2 in which plan.micro_batch_size, of all "
          "replicas together, is divided by the replicas that the plan has, and `software` is none unless it is given: "
          "stagecraft resolve.");
}

bool to_newest_form(Value& scenario, Problems& problems) {
  rename_old_fields(scenario);
  add_stages(scenario);
  Value* schema = scenario.find("schema");
  if (!schema || schema->text != kFirst) return true;
  Problems other;
  const Value checked = config::check(scenario, scenario_fields(), "", other);
  if (!other.empty()) return false;
  divide_sizes(*scenario.find("plan"), sharing_replicas(checked.at("plan")), problems);
  schema->text = kSecond;
  schema->origin = "computed";
  if (!scenario.has("software")) add_software(scenario, "none", "computed");
  return true;
}

std::vector<std::string> with_chosen_options(std::vector<std::string> sets, const std::vector<std::string>& chosen) {
  sets.push_back(fmt::format("schema={}", kSecond));
  sets.insert(sets.end(), chosen.begin(), chosen.end());
  return sets;
}

std::vector<std::string> older_form_notes(const Value& scenario) {
  std::vector<std::string> notes;
  if (scenario.at("schema").origin == "computed")
    notes.push_back(
        "a scenario/1 is read as a scenario/2, where micro_batch_size is of one replica (stagecraft resolve writes "
        "it); "
        "before the options that are printed here, write --set schema=scenario/2");
  const Value* stages = scenario.at("plan").find("stages");
  if (!stages) return notes;
  for (const Value& stage : stages->items) {
    const Value* value = stage.find("consecutive");
    if (!value || value->origin != kOldName) continue;
    notes.push_back(fmt::format("group: {} of a stage is called consecutive: {} now", value->text, value->text));
    break;
  }
  return notes;
}

}  // namespace stagecraft
