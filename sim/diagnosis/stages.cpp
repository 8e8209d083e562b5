// Rule: stages with unequal work.

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/diagnosis/rule.hpp"

namespace stagecraft::diagnosis {
namespace {

/// Computation of one micro-batch in each stage, on its slowest replica. Collectives do not count: they may take long
/// because links are slow.
std::vector<double> work_of_stages(const DiagnosisInput& in) {
  std::vector<double> work;
  for (const StageId s : in.plan().stages.ids()) {
    double slowest = 0;
    for (const StageCost& c : in.compiled.costs.replicas(s)) {
      const OpTimes times = computation_times(c);
      slowest = std::max(slowest, (times.forward + times.backward).value);
    }
    work.push_back(slowest);
  }
  return work;
}

/// Divides the layers again by their time, on the same devices. A planner that searched for its division has weighed
/// that, so it is a suggestion for every simulation alone.
std::optional<Suggestion> balanced_plan(const DiagnosisInput& in) {
  const Experiment& e = in.experiment();
  const Plan& plan = in.plan();
  const PlannerDef* balanced = find_in(planners::catalog(), "balanced");
  if (e.plan.planner == balanced || !balanced || (searches(e) && !in.may_plan)) return {};
  std::vector<DeviceId> devices;
  for (const Stage& s : plan.stages)
    for (const DeviceId d : s.all_devices())
      if (std::find(devices.begin(), devices.end(), d) == devices.end()) devices.push_back(d);
  PlanSpec spec = default_plan_spec(*balanced, in.cluster());
  const Stage& first = plan.stages.front();
  if (first.share == Share::Samples && first.micro_batch_size % first.replicas() != 0) return {};
  spec.stages = plan.different_stages();
  spec.replicas = first.replicas();
  spec.group = first.shape.degrees;
  spec.micro_batch_size = first.micro_batch_size;
  spec.share = first.share;
  spec.recompute = first.shape.recomputation;
  spec.devices = devices;
  return Suggestion{{"plan=" + to_text(spec, in.cluster())}, "divide the layers by their time"};
}

}  // namespace

/// A stage with more work than the others, or a last stage with almost none.
std::optional<Finding> unequal_stages(const DiagnosisInput& in) {
  if (!in.idealized.stages_are_comparable() || in.plan().stage_count() < 2) return {};
  // Where stages are unequal because devices are, equal devices make them unequal: neither difference counts alone.
  // What links make unequal is no work of a stage.
  const Seconds saved = in.period - in.idealized.without(Cost::UnequalStages);
  const Seconds alike = in.idealized.without(kSlowDevices | Cost::SlowLinks);
  const Seconds saved_alike = alike - in.idealized.without(kSlowDevices | Cost::SlowLinks | Cost::UnequalStages);
  const Seconds lost = std::min(saved, saved_alike);
  const std::vector<double> work = work_of_stages(in);
  const double mean = std::accumulate(work.begin(), work.end(), 0.0) / static_cast<double>(work.size());
  const auto busiest = std::max_element(work.begin(), work.end());
  const auto idlest = std::min_element(work.begin(), work.end());
  if (mean <= 0) return {};
  constexpr double kAlmostNothing = 0.1;
  const bool is_empty = *idlest < kAlmostNothing * mean;
  const StageId s{(is_empty ? idlest : busiest) - work.begin()};
  Finding f = finding(in, is_empty ? "empty-stage" : "unequal-stages", stage_text(in, s), lost);
  const std::string stage = "S" + f.where.substr(1);
  if (is_empty)
    f.sentence = fmt::format(
        "{} has {} of the work of a mean stage, so its device idles while the others do the work: {} of the period.",
        stage, percent(*idlest / mean), percent(f.share));
  else
    f.sentence = fmt::format(
        "{} computes {:.2f} times as long as the mean of the stages, and the others wait for it: {} of the period.",
        stage, *busiest / mean, percent(f.share));
  if (const auto suggestion = balanced_plan(in)) f.suggestions.push_back(*suggestion);
  return f;
}

}  // namespace stagecraft::diagnosis
