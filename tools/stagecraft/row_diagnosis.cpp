// Compiles and runs the scenario again with the options of a table's row to find what limits it, for the first row of
// `plan` and the printed rows of `search`.

#include "tools/stagecraft/row_diagnosis.hpp"

#include <algorithm>
#include <utility>

#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/threads.hpp"
#include "sim/experiment/order_experiment.hpp"
#include "sim/experiment/run.hpp"
#include "sim/experiment/scenario_version.hpp"

namespace stagecraft {

namespace {

Diagnosis diagnosis_of(const std::string& file, const std::vector<std::string>& sets, CompiledExperiment c,
                       const std::string& backend, WhatIf what_if) try {
  return diagnose(c, run(c, backend), backend, scenario_reader(file, sets, c.experiment), what_if);
} catch (const Infeasible&) {
  return {};
}

CompiledExperiment compile_row(PlannedExperiment planned, const RowOrder& order) {
  if (!order.schedule) return compile(std::move(planned));
  const Schedule schedule =
      with_iterations(*order.schedule, planned.plan, order.iterations, planned.experiment.run.lowering.iterations);
  return compile(std::move(planned), &schedule);
}

}  // namespace

Diagnosis diagnose_row(const std::string& file, std::vector<std::string> sets, const std::vector<std::string>& row_sets,
                       const std::string& backend, WhatIf what_if, const PlannedExperiment* planned_row,
                       const RowOrder& order) {
  sets = with_chosen_options(std::move(sets), row_sets);
  const Experiment e = load_experiment(file, sets);
  PlannedExperiment planned = planned_row ? *planned_row : plan_experiment(e);
  planned.experiment = e;
  return diagnosis_of(file, sets, compile_row(std::move(planned), order), backend, what_if);
}

std::vector<std::string> causes_of_rows(const RowsToDiagnose& asked, int threads, const std::function<bool()>& stop) {
  struct Row {
    std::string cause;
    std::size_t instructions = 0;
  };
  std::vector<Row> rows(asked.sets_of_rows.size());
  const auto diagnose_one = [&](std::size_t i) {
    const StopScope scope(stop);
    const std::vector<std::string> joined = with_chosen_options(asked.sets, asked.sets_of_rows[i]);
    try {
      CompiledExperiment c = compile_row(plan_experiment(load_experiment(asked.file, joined)), asked.orders[i]);
      rows[i].instructions = c.program.size();
      rows[i].cause = cause_text(diagnosis_of(asked.file, joined, std::move(c), asked.backend, WhatIf::None));
    } catch (const Stopped&) {
    }
  };
  constexpr std::size_t kAtOnce = 8;  // Not as many as threads, so that their number does not change the answer.
  std::vector<std::string> causes;
  std::size_t instructions = 0;
  for (std::size_t begin = 0; begin < rows.size() && instructions <= kMostDiagnosed && !stop(); begin += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, rows.size() - begin);
    run_tasks(static_cast<int>(count), threads, [&](int i) { diagnose_one(begin + i); });
    for (std::size_t i = begin; i < begin + count; ++i) {
      instructions += rows[i].instructions;
      if (instructions <= kMostDiagnosed) causes.push_back(rows[i].cause);
    }
  }
  causes.resize(rows.size());
  return causes;
}

}  // namespace stagecraft
