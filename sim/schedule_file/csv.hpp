#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule_file/actions.hpp"
#include "sim/schedule_file/torch.hpp"

namespace stagecraft {

/// A file of PyTorch's text: one row a rank, one action a cell ("0F1", "1I3", "0SEND_F1", "2UNSHARD",
/// "(0F3;7B5)OVERLAP_F_B"). Without messages (compute_only) empty cells are idle slots; with them (compute_comms) there
/// are none. "R", recomputation, is an extension of Stagecraft.
struct CsvFile {
  ActionTable actions;
  std::vector<std::vector<int>> columns;  ///< Column of each action in the file, from 0.
  int stages = 0;                         ///< One more than the last stage that computes something.
  int micro_batches = 0;                  ///< One more than the last micro-batch that something is computed on.
  bool communicates = false;              ///< Whether any action is not a computation.
};

/// A bad cell: a problem of level 1 with its place in the text.
struct CellProblem {
  ScheduleProblem problem;
  Where where;
  std::string help;
};

/// Reads either kind of file. Every cell, without quotes around it, must match in full, and be known to `version` when
/// one is given; bad cells are appended to `problems` and skipped. A byte order mark in front is skipped.
/// O(text).
CsvFile read_csv(std::string_view text, const std::string& file, std::optional<TorchVersion> version,
                 std::vector<CellProblem>& problems);
/// Throws InputError with every bad cell and its place.
void throw_if_any(const std::vector<CellProblem>&);
std::string to_csv(const ActionTable&);

/// The computations of a file.
struct CsvSchedule {
  Schedule schedule;
  std::vector<std::vector<int>> columns;  ///< Column of each op in the file, from 0.
  int stages = 0;
  int micro_batches = 0;
};
CsvSchedule compute_of(CsvFile);

/// A compute-only file; messages are refused. Throws InputError with every bad cell and its place.
CsvSchedule parse_schedule_csv(std::string_view text, const std::string& file);
std::string to_csv(const Schedule&);

/// The chain of stages that the rows imply: stage s feeds s+1 when both run the same micro-batches; a stage with other
/// micro-batches starts another chain (pipelines in both directions). Problems of structure that make a plan
/// impossible, such as a stage on two ranks or a chain whose stages disagree, are appended to `problems`.
Plan implied_plan(const CsvSchedule&, std::vector<ScheduleProblem>& problems);

}  // namespace stagecraft
