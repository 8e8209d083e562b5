#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

/// A schedule read from PyTorch's text: one row a rank, one action a cell ("0F1", "2B0", "1I3", "1W3",
/// "(0F3;7B5)OVERLAP_F_B"), empty cells for idle slots. "R" for recomputation is ours.
struct CsvSchedule {
  Schedule schedule;
  std::vector<std::vector<int>> columns;  ///< Column of each op in the file, from 0.
  int stages = 0;
  int micro_batches = 0;
};

/// Level 1 of validation: every cell must match in full. Throws InputError with every bad cell and its place.
CsvSchedule parse_schedule_csv(std::string_view text, const std::string& file);
std::string to_csv(const Schedule&);

/// The chain of stages that the rows imply: stage s feeds s+1 when both run the same micro-batches; a stage with other
/// micro-batches starts a chain of its own (pipelines in both directions). Problems of structure that make a plan
/// impossible, such as a stage on two ranks or a chain whose stages disagree, are appended to `problems`.
Plan implied_plan(const CsvSchedule&, std::vector<ScheduleProblem>& problems);

}  // namespace stagecraft
