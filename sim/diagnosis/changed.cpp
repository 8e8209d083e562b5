// Simulates the suggestions of a diagnosis, each as a scenario with its options, and sets apart those that cannot run.

#include "sim/diagnosis/changed.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/experiment/fold_replicas.hpp"
#include "sim/experiment/order_evaluation.hpp"

namespace stagecraft {

ChangedRuns::ChangedRuns(ScenarioReader read, std::string backend, Seconds period, int samples, int limit,
                         std::size_t most_instructions)
    : read_(std::move(read)),
      backend_(std::move(backend)),
      period_(period),
      samples_(samples),
      limit_(limit),
      instructions_left_(most_instructions) {}

std::string ChangedRuns::simulate(Suggestion& s) {
  if (limit_ <= 0 || exhausted_ || s.run) return {};
  --limit_;
  try {
    const PlannedExperiment planned = plan_experiment(read_(s.sets));
    const CompiledExperiment compiled =
        backend_ == "ideal" ? compile_for_report(planned, backend_) : compile_folded(planned, nullptr);
    exhausted_ = compiled.program.size() > instructions_left_;
    if (exhausted_) return {};
    instructions_left_ -= compiled.program.size();
    const Outcome outcome = run_to_compare(compiled, backend_);
    fullest_device_memory(outcome.report, compiled.cluster());
    const double now = period_.value / samples_;
    const int samples = static_cast<int>(std::lround(compiled.program.samples()));
    const double then = outcome.report.period.value / samples;
    s.run = ChangedRun{outcome.report.period, samples, 1 - then / now};
    return {};
  } catch (const InputError& e) {  // Another planner or schedule may not take these options.
    return e.problems().empty() ? e.what() : e.problems().front().message;
  } catch (const Infeasible& e) {
    return e.code() == "memory" ? "does not fit in memory" : full_message(e.problem());
  }
}

void ChangedRuns::simulate(Finding& finding) {
  std::vector<Suggestion> runnable;
  for (Suggestion& s : finding.suggestions) {
    std::string why_not = simulate(s);
    if (why_not.empty())
      runnable.push_back(std::move(s));
    else
      finding.refused.push_back({std::move(s), std::move(why_not)});
  }
  std::stable_sort(runnable.begin(), runnable.end(), [](const Suggestion& a, const Suggestion& b) {
    return (a.run ? a.run->saved : 0) > (b.run ? b.run->saved : 0);
  });
  finding.suggestions = std::move(runnable);
}

}  // namespace stagecraft
