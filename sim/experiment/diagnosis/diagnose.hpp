#pragma once

#include <string>

#include "sim/experiment/diagnosis/changed.hpp"
#include "sim/report/diagnosis.hpp"

namespace stagecraft {

/// Whether the suggestions of the largest loss are simulated, or of every cause.
enum class WhatIf : std::uint8_t { First, Every };

/// What limits a simulated run, from runs of the same program without one of its costs. Suggestions are simulated on
/// the same backend. With WhatIf::First, programs of more than kMostDiagnosed instructions have no diagnosis but a
/// reason, and planners and schedules that search leave suggestions unsimulated.
Diagnosis diagnose(const CompiledExperiment&, const Outcome&, const std::string& backend, const ScenarioReader&,
                   WhatIf = WhatIf::First);

inline constexpr std::size_t kMostDiagnosed = 30'000;

}  // namespace stagecraft
