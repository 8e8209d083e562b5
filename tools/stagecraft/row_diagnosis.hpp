#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/diagnosis/diagnose.hpp"

namespace stagecraft {

/// The order of a row that was searched for, so that it need not be again, and its iterations. Null: it was not.
struct RowOrder {
  std::shared_ptr<const Schedule> schedule = {};
  int iterations = 1;
};

/// What limits the first row of a table: the scenario `file` with `sets` and then the options of the row, on the
/// backend that ranks it. `planned`: the plan of the row, if it is known. Empty where it cannot run, which the table
/// says.
Diagnosis diagnose_row(const std::string& file, std::vector<std::string> sets, const std::vector<std::string>& row_sets,
                       const std::string& backend, WhatIf, const PlannedExperiment* planned = nullptr,
                       const RowOrder& = {});

/// Rows of a table: the scenario `file` with `sets` and then the options of each row, on the backend that ranks them.
struct RowsToDiagnose {
  std::string file;
  std::vector<std::string> sets;
  std::vector<std::vector<std::string>> sets_of_rows;
  std::vector<RowOrder> orders;
  std::string backend;
};

/// cause_text() of each row, without suggestions. When the programs of the rows have more than kMostDiagnosed
/// instructions together, or `stop` asks for the end, the later rows have none.
std::vector<std::string> causes_of_rows(const RowsToDiagnose&, int threads, const std::function<bool()>& stop);

}  // namespace stagecraft
