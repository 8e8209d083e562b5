#pragma once

#include "sim/diagnosis/diagnose.hpp"

namespace stagecraft {

/// What a real run waits for, from its timeline. The savings of suggestions come from a simulation of the same
/// scenario on `fluid` without and with the change; no saving is measured.
Diagnosis diagnose_measured(const CompiledExperiment&, const Outcome&, const ScenarioReader&);

}  // namespace stagecraft
