#include "tools/stagecraft/row_diagnosis.hpp"

#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft {

namespace {

Diagnosis diagnosis_of(const std::string& file, const std::vector<std::string>& sets, const CompiledExperiment& c,
                       const std::string& backend, WhatIf what_if) try {
  return diagnose(c, run(c, backend), backend, scenario_reader(file, sets, c.experiment), what_if);
} catch (const Infeasible&) {
  return {};
}

}  // namespace

Diagnosis diagnose_row(const std::string& file, std::vector<std::string> sets, const std::vector<std::string>& row_sets,
                       const std::string& backend, WhatIf what_if) {
  sets.insert(sets.end(), row_sets.begin(), row_sets.end());
  return diagnosis_of(file, sets, compile(load_experiment(file, sets)), backend, what_if);
}

std::vector<std::string> causes_of_rows(const std::string& file, const std::vector<std::string>& sets,
                                        const std::vector<std::vector<std::string>>& sets_of_rows,
                                        const std::string& backend) {
  std::vector<std::string> causes;
  std::size_t instructions = 0;
  try {
    for (const std::vector<std::string>& of_row : sets_of_rows) {
      std::vector<std::string> joined = sets;
      joined.insert(joined.end(), of_row.begin(), of_row.end());
      const CompiledExperiment c = compile(load_experiment(file, joined));
      instructions += c.program.size();
      if (instructions > kMostDiagnosed) break;
      causes.push_back(cause_text(diagnosis_of(file, joined, c, backend, WhatIf::None)));
    }
  } catch (const Stopped&) {
  }
  causes.resize(sets_of_rows.size());
  return causes;
}

}  // namespace stagecraft
