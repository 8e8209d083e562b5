#include "sim/experiment/scenario_version.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/config/fields.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

constexpr const char* kSecond = "scenario/2";

int count_in(const Value& map, const char* field) {
  const Value* value = map.find(field);
  return value ? config::as_int(*value) : 1;
}

/// Replicas that divide the samples of each micro-batch, as a part with a micro-batch size is written: the plan, or one
/// of the stages that it lists, whose devices say how many replicas there are.
int sharing_replicas(const Value& part, int group) {
  const Value* share = part.find("share");
  if (share && share->text == "micro_batches") return 1;
  if (const Value* devices = part.find("devices"); devices && part.has("layers"))
    return std::max<int>(1, static_cast<int>(std::ssize(devices->items)) / group);
  return count_in(part, "replicas");
}

/// Calls f(part, path, replicas that share its micro-batches) for every part of the plan with a micro-batch size.
template <class Plan, class F>
void for_each_size(Plan& plan, F&& f) {
  auto* stages = plan.find("stages");
  if (!stages || stages->is_scalar()) {
    if (plan.has("micro_batch_size")) f(plan, std::string("plan"), sharing_replicas(plan, 1));
    return;
  }
  const Value* group = plan.find("group");
  const int devices = group ? count_in(*group, "tensor") * count_in(*group, "context") : 1;
  for (std::size_t s = 0; s < stages->items.size(); ++s)
    if (stages->items[s].has("micro_batch_size"))
      f(stages->items[s], fmt::format("plan.stages[{}]", s), sharing_replicas(stages->items[s], devices));
}

void rename_consecutive(Value& stage) {
  for (config::Member& m : stage.members)
    if (m.key == "group" && m.value.is_scalar()) m.key = "consecutive", m.value.origin = kOldName;
}

}  // namespace

void rename_old_fields(Value& scenario) {
  Value* plan = scenario.find("plan");
  Value* stages = plan ? plan->find("stages") : nullptr;
  if (!stages) return;
  for (Value& stage : stages->items) rename_consecutive(stage);
  for (config::Member& stage : stages->members) rename_consecutive(stage.value);
}

bool counts_per_replica(const Value& scenario) { return scenario.at("schema").text == kSecond; }

std::int64_t written_micro_batch(const Value& plan, bool per_replica) {
  std::int64_t largest = 0;
  for_each_size(plan, [&](const Value& part, const std::string&, int replicas) {
    const std::int64_t size = config::as_int(part.at("micro_batch_size"));
    largest = std::max(largest, size * (per_replica ? replicas : 1));
  });
  return largest;
}

void add_software(Value& scenario, Value software) {
  std::vector<config::Member>& members = scenario.members;
  const auto run = std::find_if(members.begin(), members.end(), [](const auto& m) { return m.key == "run"; });
  members.insert(std::next(run), {"software", scenario.where, std::move(software)});
}

Value in_second_version(Value scenario) {
  if (counts_per_replica(scenario)) return scenario;
  Problems problems;
  for_each_size(*scenario.find("plan"), [&](Value& part, const std::string& path, int replicas) {
    Value& size = *part.find("micro_batch_size");
    const int samples = config::as_int(size);
    if (replicas == 1) return;
    if (samples % replicas != 0)
      problems.add(size.where, path + ".micro_batch_size",
                   fmt::format("{} of all replicas together cannot be divided by {}, and scenario/2 counts the samples "
                               "of one replica",
                               pluralize(samples, "sample"), pluralize(replicas, "replica")),
                   fmt::format("a multiple of {}", replicas), "micro-batch-size");
    size.text = fmt::format("{}", samples / replicas);
    size.origin = "computed";
  });
  problems.throw_if_any();
  Value& schema = *scenario.find("schema");
  schema.text = kSecond;
  schema.origin = "computed";
  if (!scenario.has("software")) add_software(scenario, Value::scalar("none", {}, "computed"));
  return scenario;
}

}  // namespace stagecraft
