#include "sim/experiment/diagnosis/diagnose.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/experiment/diagnosis/rule.hpp"

namespace stagecraft {
namespace {

/// A loss below this share of the period is not worth a change.
constexpr double kSmallLoss = 0.05;
constexpr int kMostFirst = 8, kMostEvery = 100;

constexpr DiagnosisRule kRules[] = {
    diagnosis::unequal_stages,   diagnosis::slow_device,   diagnosis::placement,     diagnosis::shared_link,
    diagnosis::slow_link,        diagnosis::gradient_sums, diagnosis::recomputation, diagnosis::group_collectives,
    diagnosis::expert_imbalance, diagnosis::bubble};

Finding computation(const DiagnosisInput& in, const std::vector<Finding>& losses) {
  DeviceId busiest;
  for (const DeviceId d : in.report().devices.ids())
    if (!busiest.valid() || in.report().devices[d].busy > in.report().devices[busiest].busy) busiest = d;
  const double share = 1 - in.report().steady_bubble;
  Finding f = diagnosis::finding(in, "computation", in.cluster().devices[busiest].name, {});
  f.sentence =
      fmt::format("Computation limits the run: {} computes for {} of the period", f.where, diagnosis::percent(share));
  if (losses.empty())
    f.sentence += ", and no other cause costs time.";
  else
    f.sentence +=
        fmt::format("; the largest loss, {}, is {}.", losses.front().cause, diagnosis::percent(losses.front().share));
  return f;
}

/// A placement that explains most of what messages cost makes the links no cause of their own.
void explain_messages(std::vector<Finding>& losses) {
  const auto placement =
      std::find_if(losses.begin(), losses.end(), [](const Finding& f) { return f.cause == "placement"; });
  if (placement == losses.end()) return;
  const Seconds explained = placement->lost;
  std::erase_if(losses, [&](const Finding& f) {
    return (f.cause == "slow-link" || f.cause == "shared-link") && f.lost < 2 * explained;
  });
}

/// Planners and schedules that search may take long.
bool is_quick(const CompiledExperiment& c) {
  const std::string_view planner = c.experiment.plan.planner->name;
  return !c.schedule.search && (planner == "balanced" || planner == "explicit" || planner == "layout");
}

}  // namespace

Diagnosis diagnose(const CompiledExperiment& compiled, const Outcome& outcome, const std::string& backend,
                   const ScenarioReader& read, WhatIf what_if) {
  Diagnosis d;
  d.samples = compiled.program.mini_batch;
  if (outcome.timeline.clock != Clock::Simulated || !outcome.timeline.instruction_times ||
      compiled.program.size() == 0 || outcome.report.period.value <= 0)
    return d;
  const bool every = what_if == WhatIf::Every;
  if (!every && compiled.program.size() > kMostDiagnosed) {
    d.not_simulated = fmt::format("not diagnosed above {} instructions; --what-if does it", kMostDiagnosed);
    return d;
  }
  const bool simulate = every || is_quick(compiled);
  IdealizedRuns idealized(compiled, outcome, backend);
  ChangedRuns changed(read, backend, outcome.report.period, compiled.program.mini_batch,
                      !simulate ? 0
                      : every   ? kMostEvery
                                : kMostFirst);
  if (!simulate) d.not_simulated = "the plan or the schedule is searched for: --what-if simulates changes";
  const DiagnosisInput in{compiled, outcome, idealized, changed, backend, outcome.report.period};
  for (const DiagnosisRule rule : kRules)
    if (std::optional<Finding> f = rule(in); f && f->lost.value > 0) d.findings.push_back(std::move(*f));
  explain_messages(d.findings);
  std::stable_sort(d.findings.begin(), d.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.lost > b.lost; });
  Finding last = computation(in, d.findings);
  std::erase_if(d.findings, [](const Finding& f) { return f.share < kSmallLoss; });
  d.findings.push_back(std::move(last));
  for (Finding& f : d.findings)
    if (every || &f == &d.findings.front()) changed.simulate(f);
  return d;
}

}  // namespace stagecraft
