#pragma once

#include <string>

#include "sim/experiment/diagnosis/changed.hpp"
#include "sim/report/diagnosis.hpp"

namespace stagecraft {

/// Which suggestions are simulated: for the largest loss, for every cause, or a few for the first row of a table, also
/// where its plan or schedule is searched for again with each.
enum class WhatIf : std::uint8_t { First, Every, Row };

/// What limits a run. Of a simulated run, from runs of the same program without one of its costs; suggestions are
/// simulated on the same backend. Of a measured run, diagnose_measured(). Except with WhatIf::Every, programs of more
/// than kMostDiagnosed instructions have no diagnosis but a reason, and planners and schedules that search leave
/// suggestions unsimulated.
Diagnosis diagnose(const CompiledExperiment&, const Outcome&, const std::string& backend, const ScenarioReader&,
                   WhatIf = WhatIf::First);

inline constexpr std::size_t kMostDiagnosed = 30'000;

}  // namespace stagecraft
