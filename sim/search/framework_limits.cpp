// What a search leaves to the framework of the software stack: its rules and states, and the switches of overlap that
// it has.

#include "sim/search/framework_limits.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/diagnosis/framework_check.hpp"
#include "sim/experiment/software.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/search/policies.hpp"

namespace stagecraft {
namespace {

using enum StateSharding;

bool is_deepspeed(const SoftwareStack& software) {
  return software.name == "megatron-deepspeed" || software.name == "bloom";
}

/// Whether the scenario is for Megatron-FSDP: its plan divides more than the optimizer, or its software says so.
bool asks_for_fsdp(const Experiment& e) {
  if (e.plan.sharding > Optimizer) return true;
  const config::Value* software = e.source ? e.source->find("software") : nullptr;
  const config::Value* base = software && software->is_map() ? software->find("base") : nullptr;
  return base && base->origin.ends_with("megatron-fsdp");
}

}  // namespace

FrameworkLimits::FrameworkLimits(const Experiment& configured, bool any_schedule)
    : has_rules_(has_framework_rules(configured.software().name)),
      any_schedule_(any_schedule),
      shardings_{None, Optimizer, Gradients, Weights} {
  const SoftwareStack& software = configured.software();
  if (is_megatron(software) && !is_deepspeed(software) && !asks_for_fsdp(configured)) {
    shardings_ = {None, Optimizer};
    other_shardings_ = "ZeRO-2 and ZeRO-3, which Megatron-LM runs as Megatron-FSDP alone (--set plan.shard=weights)";
  } else if (software.name.starts_with("torchtitan")) {
    shardings_ = {None, Weights};
    other_shardings_ = "ZeRO-1 and ZeRO-2, which torchtitan does not have";
  }
  if (!has_rules_ || is_deepspeed(software)) return;
  // Without a tensor group whose rows are not divided, messages have nothing to overlap with.
  for (const Overlap feature : {Overlap::Tensor, Overlap::Gradients, Overlap::Weights, Overlap::Experts})
    if (!software.overlap[feature] && software.can_overlap(feature)) switches_.push_back(feature);
}

std::string FrameworkLimits::refusal_of(const PlannedExperiment& planned) const {
  if (!has_rules_) return {};
  for (const Diagnostic& d : framework_refusals(planned))
    if (d.code != kModelRefusal && !(any_schedule_ && d.code == kScheduleRefusal)) return d.message;
  return {};
}

Experiment with_overlap(const Experiment& e, const std::vector<Overlap>& features) {
  if (features.empty()) return e;
  Experiment changed = variant_of(e);
  config::Value tree = *e.source;
  config::Value& overlap = *tree.find("software")->find("overlap");
  for (const Overlap feature : features) *overlap.find(name_of(feature)) = config::Value::scalar("true", overlap.where);
  changed.source = std::make_shared<const config::Value>(std::move(tree));
  changed.rules = read_cost_rules(*changed.source, changed.cluster);
  changed.costs = std::make_shared<const CostTable>(changed.model, changed.cluster, changed.profiles, changed.rules);
  return changed;
}

std::vector<std::vector<Overlap>> overlap_sets(const std::vector<Overlap>& features) {
  std::vector<std::vector<Overlap>> sets;
  for (const auto& left_out :
       {std::vector<Overlap>{}, {Overlap::Experts}, {Overlap::Tensor}, {Overlap::Tensor, Overlap::Experts}}) {
    std::vector<Overlap> set;
    for (const Overlap f : features)
      if (std::find(left_out.begin(), left_out.end(), f) == left_out.end()) set.push_back(f);
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(std::move(set));
  }
  return sets;
}

std::string overlap_setting(const Experiment& configured, const std::vector<Overlap>& features, const Plan& plan) {
  const StageShape& shape = plan.stages.front().shape;
  const bool shares_data = shape.degrees.replicas * shape.degrees.context > 1;
  const auto matters = [&](Overlap f) {
    return f == Overlap::Tensor      ? shape.degrees.tensor > 1
           : f == Overlap::Experts   ? shape.degrees.expert > 1
           : f == Overlap::Gradients ? shares_data
                                     : shares_data && shape.sharding != None;
  };
  std::string text;
  const auto add = [&](std::string_view name, std::string_view on) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, on);
  };
  if (std::none_of(features.begin(), features.end(), matters)) return {};
  const config::Value& overlap = configured.source->at("software").at("overlap");
  for (const Overlap f : overlap_features()) {
    const bool is_new = std::find(features.begin(), features.end(), f) != features.end() && matters(f);
    const config::Value& written = overlap.at(name_of(f));
    if (is_new)
      add(name_of(f), "true");
    else if (written.origin.empty())
      add(name_of(f), written.text);
  }
  return "software.overlap={" + text + "}";
}

}  // namespace stagecraft
