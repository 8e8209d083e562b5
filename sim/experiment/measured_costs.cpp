// An experiment with the op times of a real run in place of predicted ones, which `validate` simulates.

#include "sim/experiment/measured_costs.hpp"

#include <algorithm>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

CompiledExperiment with_measured_times(CompiledExperiment c, const Timeline& measured) {
  STAGECRAFT_CHECK(measured.instruction_times && measured.start.size() == c.program.size());
  for (const InstructionId n : c.program.instructions.ids())
    if (Instruction& i = c.program.instructions[n]; i.is_compute())
      i.duration = Seconds{std::max(0.0, measured.end[n] - measured.start[n])};
  c.program.traffic.clear();
  return c;
}

}  // namespace stagecraft
