// Rule: the bubble of the pipeline.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/diagnosis/rule.hpp"
#include "sim/diagnosis/suggestions.hpp"

namespace stagecraft::diagnosis {
namespace {

/// Every cost but the fill and drain of the pipeline. Collectives of groups are work of the devices where they are a
/// part of ops; where they are instructions, devices wait for them, which is no bubble.
Cost other_costs(const Program& program) {
  const Cost costs = Cost::Contention | Cost::Messages | Cost::GradientSums | kSlowDevices | Cost::UnequalStages |
                     Cost::SlowLinks | Cost::UnequalLoads | Cost::UnequalReplicas | Cost::HostMemory;
  const bool waits = std::any_of(program.collectives.begin(), program.collectives.end(),
                                 [](const CollectiveCall& c) { return !is_offload(c) && !sums_gradients(c.purpose); });
  return waits ? costs | Cost::GroupCollectives : costs;
}

}  // namespace

/// The time in which devices wait for the first and after the last micro-batch, where nothing else holds them up.
std::optional<Finding> bubble(const DiagnosisInput& in) {
  const Experiment& e = in.experiment();
  const int stages = in.plan().different_stages();
  if (stages < 2) return {};
  const Cost others = other_costs(in.program());
  const Seconds lost = in.idealized.without(others) - in.idealized.busiest(others);
  Finding f = finding(in, "bubble", e.schedule.name(), lost);
  f.sentence =
      fmt::format("{} with {} and {} fills and drains the pipeline, which costs {} of the period.", e.schedule.name(),
                  pluralize(stages, "stage"), pluralize(e.run.micro_batches, "micro-batch", "es"), percent(f.share));
  const bool is_plain = e.schedule.name() == "1f1b" || e.schedule.name() == "gpipe";
  if (in.plan().loads.empty()) f.suggestions.push_back(more_micro_batches(in, 4));
  if (!is_plain) return f;
  if (auto smaller = smaller_micro_batches(in)) {
    smaller->change = fmt::format("twice as many micro-batches of half the size, in the same batch of {} samples",
                                  in.program().mini_batch);
    f.suggestions.push_back(std::move(*smaller));
  }
  if (e.plan.stages && e.plan.planner->name == "balanced")
    f.suggestions.push_back({{"run.schedule=interleaved", fmt::format("plan.stages={}", 2 * *e.plan.stages)},
                             "interleaved 1F1B with two stages on each device"});
  f.suggestions.push_back({{"run.schedule=zb-h1"}, "a schedule whose weight gradients fill the bubble"});
  return f;
}

}  // namespace stagecraft::diagnosis
