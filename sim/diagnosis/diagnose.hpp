#pragma once

#include <string>

#include "sim/diagnosis/changed.hpp"
#include "sim/result/diagnosis.hpp"

namespace stagecraft {

/// Which suggestions are simulated: for the largest loss, for every cause, a few for the first row of a table, also
/// where its plan or schedule is searched for again with each, or none.
enum class WhatIf : std::uint8_t { First, Every, Row, None };

/// What limits a run. Of a simulated run, from runs of the same program without one of its costs; suggestions are
/// simulated on the same backend. Of a measured run, diagnose_measured(). Except with WhatIf::Every, suggestions stay
/// unsimulated where a planner or a schedule searches, and those after most_simulated() instructions; the row of a
/// table has no diagnosis above kMostDiagnosed instructions. Diagnosis::not_simulated says why, and which. The program
/// is changed meanwhile, and at the end as it was (IdealizedRuns).
Diagnosis diagnose(CompiledExperiment&, const Outcome&, const std::string& backend, const ScenarioReader&,
                   WhatIf = WhatIf::First);

/// What a real run waits for, from its timeline. The savings of suggestions come from a simulation of the same
/// scenario on `fluid` without and with the change; no saving is measured.
Diagnosis diagnose_measured(CompiledExperiment&, const Outcome&, const ScenarioReader&);

/// A diagnosis simulates the program up to about eight times on the fast backends, which takes two seconds here.
inline constexpr std::size_t kMostDiagnosed = 1'000'000;
/// Instructions of all suggestions of one run together: some ten seconds of the backend.
std::size_t most_simulated(const std::string& backend);

}  // namespace stagecraft
