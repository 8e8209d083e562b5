#include "tools/stagecraft/row_diagnosis.hpp"

#include "sim/core/diagnostic.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft {

Diagnosis diagnose_row(const std::string& file, std::vector<std::string> sets, const std::vector<std::string>& row_sets,
                       const std::string& backend, WhatIf what_if) {
  sets.insert(sets.end(), row_sets.begin(), row_sets.end());
  const CompiledExperiment c = compile(load_experiment(file, sets));
  try {
    return diagnose(c, run(c, backend), backend, scenario_reader(file, sets, c.experiment), what_if);
  } catch (const Infeasible&) {
    return {};
  }
}

}  // namespace stagecraft
