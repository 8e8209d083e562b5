#pragma once

#include <string>
#include <vector>

#include "sim/experiment/diagnosis/diagnose.hpp"

namespace stagecraft {

/// What limits the first row of a table: the scenario `file` with `sets` and then the options of the row, on the
/// backend that ranks it. Empty where it cannot run, which the table says.
Diagnosis diagnose_row(const std::string& file, std::vector<std::string> sets, const std::vector<std::string>& row_sets,
                       const std::string& backend, WhatIf);

/// cause_text() of each of these rows, without suggestions, until the programs of the rows have kMostDiagnosed
/// instructions together or a StopScope asks for the end; the later rows have none.
std::vector<std::string> causes_of_rows(const std::string& file, const std::vector<std::string>& sets,
                                        const std::vector<std::vector<std::string>>& sets_of_rows,
                                        const std::string& backend);

}  // namespace stagecraft
