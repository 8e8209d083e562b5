// Which Program a real backend executes for an experiment whose plan has groups of devices.

#include "sim/experiment/real_program.hpp"

#include "sim/experiment/places.hpp"

namespace stagecraft {

std::optional<UnfoldedProgram> unfold_for_real_run(const CompiledExperiment& c) {
  const RunSpec& run = c.experiment.run;
  if (!has_groups(c.plan) || run.each_device) return {};
  return with_error_context(*c.experiment.source, "plan", [&](const config::Value&) {
    const bool sends = run.emulated && run.collectives_flow;
    return sends ? unfold_with_collectives(c.program, c.plan) : unfold(c.program, c.plan);
  });
}

}  // namespace stagecraft
