#pragma once

#include <optional>

#include "sim/experiment/run.hpp"
#include "sim/program/unfold.hpp"

namespace stagecraft {

/// The Program that a real backend executes, with instructions for each device of a group. Nothing where the compiled
/// one has them already.
///
/// What a group exchanges inside of an op, kernels do themselves. An emulated run sleeps for it, or sends it over the
/// network where collectives are messages (`run.collectives: flows`).
std::optional<UnfoldedProgram> unfold_for_real_run(const CompiledExperiment&);

}  // namespace stagecraft
