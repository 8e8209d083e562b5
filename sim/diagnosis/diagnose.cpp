// Diagnoses a run, entry of this folder: calls every rule, sorts the findings by what they cost, drops suggestions that
// the training framework refuses, and simulates the suggestions of the first finding, or of all.

#include "sim/diagnosis/diagnose.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/diagnosis/framework_check.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/diagnosis/rule.hpp"

namespace stagecraft {
namespace {

constexpr int kMostFirst = 8, kMostEvery = 100, kMostOfRow = 2;
constexpr std::size_t kMostSearched = 5000;

constexpr DiagnosisRule kRules[] = {
    diagnosis::unequal_stages, diagnosis::slow_device,       diagnosis::placement,
    diagnosis::shared_link,    diagnosis::slow_link,         diagnosis::gradient_sums,
    diagnosis::recomputation,  diagnosis::group_collectives, diagnosis::expert_imbalance,
    diagnosis::launches,       diagnosis::unequal_loads,     diagnosis::host_memory,
    diagnosis::bubble};

Finding computation(const DiagnosisInput& in, const std::vector<Finding>& losses) {
  constexpr double kSame = 1 + 1e-9;
  DeviceId busiest;
  for (const DeviceId d : in.report().devices.ids())
    if (!busiest.valid() || in.idealized.computation(d) > kSame * in.idealized.computation(busiest)) busiest = d;
  const double share = in.idealized.computation(busiest) / in.period;
  Finding f = diagnosis::finding(in, "computation", in.cluster().devices[busiest].name, {});
  const std::string computes = fmt::format("{} computes for {} of the period", f.where, percent(share));
  if (losses.empty())
    f.sentence = fmt::format("Computation limits the run: {}, and no other cause costs time.", computes);
  else if (losses.front().share < diagnosis::kSmallLoss)
    f.sentence = fmt::format("Computation limits the run: {}; the largest loss, {}, is {}.", computes,
                             cause_words(losses.front().cause), percent(losses.front().share));
  else
    f.sentence = fmt::format("The busiest device, {}, computes for {} of the period.", f.where, percent(share));
  return f;
}

/// A placement that explains most of what messages cost makes the links no further cause.
void explain_messages(std::vector<Finding>& losses) {
  const auto placement =
      std::find_if(losses.begin(), losses.end(), [](const Finding& f) { return f.cause == "placement"; });
  if (placement == losses.end()) return;
  const Seconds explained = placement->lost;
  std::erase_if(losses, [&](const Finding& f) {
    return (f.cause == "slow-link" || f.cause == "shared-link") && f.lost < 2 * explained;
  });
}

bool is_searched_for(const CompiledExperiment& c) { return c.schedule.search || searches(c.experiment); }

/// How many suggestions are simulated. Where a plan or schedule is searched for, each change searches again.
int most_changes(const CompiledExperiment& c, WhatIf what_if) {
  if (what_if == WhatIf::Every) return kMostEvery;
  if (what_if == WhatIf::None) return 0;
  if (!is_searched_for(c)) return kMostFirst;
  return what_if == WhatIf::Row && c.program.size() <= kMostSearched ? kMostOfRow : 0;
}

/// Whether the options leave plan, order and software as they are.
bool keeps_plan(const Suggestion& s) {
  return std::none_of(s.sets.begin(), s.sets.end(), [](const std::string& set) {
    return set.starts_with("plan") || set.starts_with("run.schedule") || set.starts_with("software");
  });
}

/// Drops suggestions that the framework of the software stack refuses, and gives the others its flags. Where planning
/// again would search, those that may be refused.
void keep_accepted(std::vector<Finding>& findings, const CompiledExperiment& c, const ScenarioReader& read,
                   bool may_plan) {
  const FrameworkCheck framework(c);
  if (!framework.has_exporter()) return;
  const auto is_refused = [&](Suggestion& s) {
    if (!may_plan) return !keeps_plan(s);
    try {
      const std::optional<std::string> flags = framework.flags_for(read(s.sets));
      // What becomes a pack is in no flag; the number of packs, which exports write as the batch, follows from it.
      const bool packs =
          std::all_of(s.sets.begin(), s.sets.end(), [](const auto& set) { return set.starts_with("data."); });
      s.flags = packs ? "" : flags.value_or("");
      return !flags;
    } catch (const InputError&) {  // ChangedRuns says why it cannot run.
      return false;
    }
  };
  for (Finding& f : findings) std::erase_if(f.suggestions, is_refused);
}

/// Why suggestions of the first finding are not simulated, and which; or why a run has none. Empty where all are.
std::string unsimulated_text(const CompiledExperiment& c, const Finding& first, WhatIf what_if, bool exhausted) {
  const char* const command = what_if == WhatIf::Row ? "stagecraft run --what-if" : "--what-if";
  std::vector<std::string> changes;
  for (const Suggestion& s : first.suggestions)
    if (!s.run) changes.push_back(s.change);
  const bool has_none = first.suggestions.empty() && first.refused.empty();
  if (has_none && what_if == WhatIf::First && searches(c.experiment) && !c.schedule.search)
    return fmt::format("the planner {} searched for this plan; stagecraft plan --planner all compares others",
                       c.experiment.plan.planner->name);
  if (changes.empty()) return {};
  if (is_searched_for(c)) return fmt::format("the plan or the schedule is searched for: {} simulates changes", command);
  if (!exhausted) return {};
  return fmt::format("{} of {} changes not simulated, because they are long runs ({} simulates all): {}",
                     changes.size(), first.suggestions.size() + first.refused.size(), command, join(changes, "; "));
}

}  // namespace

std::size_t most_simulated(const std::string& backend) {
  const bool is_fast = backend == "fluid" || backend == "ideal";
  return is_fast ? 16'000'000 : 1'600'000;
}

Diagnosis diagnose(CompiledExperiment& compiled, const Outcome& outcome, const std::string& backend,
                   const ScenarioReader& read, WhatIf what_if) {
  if (outcome.timeline.clock != Clock::Simulated) return diagnose_measured(compiled, outcome, read);
  Diagnosis d;
  d.samples = static_cast<int>(std::lround(compiled.program.samples()));
  if (!outcome.timeline.instruction_times || compiled.program.size() == 0 || outcome.report.period.value <= 0) return d;
  const bool every = what_if == WhatIf::Every;
  const bool is_row = what_if == WhatIf::Row || what_if == WhatIf::None;
  if (is_row && compiled.program.size() > kMostDiagnosed) {
    d.not_simulated =
        fmt::format("not diagnosed above {} instructions; stagecraft run --what-if does it", kMostDiagnosed);
    return d;
  }
  const int limit = most_changes(compiled, what_if);
  IdealizedRuns idealized(compiled, outcome, backend);
  ChangedRuns changed(read, backend, outcome.report.period, d.samples, limit,
                      every ? SIZE_MAX : most_simulated(backend));
  const bool may_plan = every || !is_searched_for(compiled);
  const DiagnosisInput in{compiled, outcome, idealized, changed, backend, outcome.report.period, may_plan};
  for (const DiagnosisRule rule : kRules)
    if (std::optional<Finding> f = rule(in); f && f->lost.value > 0) d.findings.push_back(std::move(*f));
  explain_messages(d.findings);
  std::stable_sort(d.findings.begin(), d.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.lost > b.lost; });
  Finding last = computation(in, d.findings);
  std::erase_if(d.findings, [](const Finding& f) { return f.share < diagnosis::kSmallLoss; });
  d.findings.push_back(std::move(last));
  keep_accepted(d.findings, compiled, read, may_plan);
  for (Finding& f : d.findings)
    if (every || &f == &d.findings.front()) changed.simulate(f);
  d.not_simulated = unsimulated_text(compiled, d.first(), what_if, changed.is_exhausted());
  return d;
}

}  // namespace stagecraft
