// Rule: recomputation that costs time, and what would make it unnecessary.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/diagnosis/rule.hpp"
#include "sim/diagnosis/suggestions.hpp"
#include "sim/experiment/fold_replicas.hpp"

namespace stagecraft::diagnosis {
namespace {

/// The run without recomputation on devices whose memory is not limited; nothing where the planner has no such plan.
std::optional<Outcome> without_recomputation(const DiagnosisInput& in) try {
  Experiment e = variant_of(in.experiment());
  auto cluster = std::make_shared<Cluster>(*e.cluster);
  for (DeviceType& type : cluster->types) type.memory = type.memory_reserve = {};
  e.cluster = cluster;
  e.plan.memory = {};
  e.plan.recompute = Recomputation::None;
  return run(compile_for_report(plan_experiment(e), in.backend), in.backend);
} catch (const Infeasible&) {
  return {};
}

/// Where memory needs recomputation: less of it, or memory from elsewhere.
void suggest_less_recomputation(const DiagnosisInput& in, Finding& f) {
  const PlanSpec& spec = in.experiment().plan;
  const std::vector<Recomputation> possible = recomputations(*in.experiment().model);
  if (!in.cluster().memories.empty() && !spec.offload)
    f.suggestions.push_back({{"plan.recompute=none", "plan.offload={activations: selective}"},
                             "activations in host memory in place of recomputation"});
  const bool keeps_core = std::find(possible.begin(), possible.end(), Recomputation::Selective) != possible.end();
  for (const Recomputation less : {Recomputation::Selective, Recomputation::Half})
    if (*spec.recompute != less && (less != Recomputation::Selective || keeps_core))
      f.suggestions.push_back(
          {{fmt::format("plan.recompute={}", to_text(less))}, fmt::format("{} recomputation", to_text(less))});
  if (auto smaller = smaller_micro_batches(in)) {
    smaller->sets.push_back("plan.recompute=none");
    smaller->change = "micro-batches of half the size without recomputation";
    f.suggestions.push_back(std::move(*smaller));
  }
  if (in.plan().stages.front().replicas() > 1 && spec.planner->fields->find("shard") &&
      spec.sharding == StateSharding::None)
    f.suggestions.push_back({{"plan.shard=optimizer", "plan.recompute=none"},
                             "the optimizer's state divided among replicas, without recomputation"});
}

}  // namespace

/// Recomputation costs time. Either memory needs it, or it is not needed.
std::optional<Finding> recomputation(const DiagnosisInput& in) {
  const auto& stages = in.plan().stages;
  const bool recomputes = std::any_of(stages.begin(), stages.end(),
                                      [](const Stage& s) { return s.shape.recomputation != Recomputation::None; });
  const PlanSpec& spec = in.experiment().plan;
  if (!recomputes || !spec.planner->fields->find("recompute") || spec.recompute == Recomputation::None) return {};
  if (!in.may_plan) return {};
  const std::optional<Outcome> without = without_recomputation(in);
  if (!without) return {};
  const Outcome& other = *without;
  const Seconds lost = in.period - other.report.period;
  DeviceId fullest;
  double excess = -kInfinity;
  for (const DeviceId d : other.report.devices.ids()) {
    const Bytes usable = in.cluster().type_of(d).usable_memory();
    const double over = other.report.devices[d].memory.total.value - (usable.value > 0 ? usable.value : kInfinity);
    if (other.report.devices[d].used && over > excess) excess = over, fullest = d;
  }
  const bool is_needed = fullest.valid() && excess > 0;
  const std::string where = fullest.valid() ? in.cluster().devices[fullest].name : std::string();
  Finding f = finding(in, is_needed ? "memory" : "recomputation", where, lost);
  if (is_needed)
    f.sentence = fmt::format(
        "Memory forces recomputation, which costs {} of the period: without it {} would need {} "
        "of {}.",
        percent(f.share), where, to_text(other.report.devices[fullest].memory.total),
        to_text(in.cluster().type_of(fullest).usable_memory()));
  else
    f.sentence = fmt::format("Recomputation costs {} of the period and is not needed: without it {}.", percent(f.share),
                             fullest.valid() && in.cluster().type_of(fullest).memory.value > 0
                                 ? fmt::format("the fullest device, {}, needs {} of {}", where,
                                               to_text(other.report.devices[fullest].memory.total),
                                               to_text(in.cluster().type_of(fullest).usable_memory()))
                                 : std::string("no memory limit is known"));
  if (!is_needed) f.suggestions.push_back({{"plan.recompute=none"}, "no recomputation"});
  if (is_needed) suggest_less_recomputation(in, f);
  return f;
}

}  // namespace stagecraft::diagnosis
