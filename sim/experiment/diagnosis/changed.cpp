#include "sim/experiment/diagnosis/changed.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {

ChangedRuns::ChangedRuns(ScenarioReader read, std::string backend, Seconds period, int samples, int limit)
    : read_(std::move(read)), backend_(std::move(backend)), period_(period), samples_(samples), limit_(limit) {}

std::optional<ChangedRun> ChangedRuns::run(const std::vector<std::string>& sets) {
  if (limit_ <= 0) return {};
  --limit_;
  try {
    const CompiledExperiment compiled = compile(read_(sets));
    const Outcome outcome = stagecraft::run(compiled, backend_);
    fullest_device_memory(outcome.report, compiled.cluster());
    const double now = period_.value / samples_;
    const double then = outcome.report.period.value / compiled.program.mini_batch;
    return ChangedRun{outcome.report.period, compiled.program.mini_batch, 1 - then / now};
  } catch (const InputError&) {  // Another planner or schedule may not take these options.
  } catch (const Infeasible&) {
  }
  return {};
}

void ChangedRuns::simulate(Finding& finding) {
  std::vector<Suggestion> runnable;
  for (Suggestion& s : finding.suggestions) {
    if (!s.run && may_simulate()) {
      s.run = run(s.sets);
      if (!s.run) continue;
    }
    runnable.push_back(std::move(s));
  }
  std::stable_sort(runnable.begin(), runnable.end(), [](const Suggestion& a, const Suggestion& b) {
    return (a.run ? a.run->saved : 0) > (b.run ? b.run->saved : 0);
  });
  finding.suggestions = std::move(runnable);
}

}  // namespace stagecraft
