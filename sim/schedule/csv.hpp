#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/actions.hpp"
#include "sim/schedule/comms.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

/// A file of PyTorch's text: one row a rank, one action a cell ("0F1", "1I3", "0SEND_F1", "2UNSHARD",
/// "(0F3;7B5)OVERLAP_F_B"). Without messages (compute_only) empty cells are idle slots; with them (compute_comms) there
/// are none. "R" for recomputation is ours.
struct CsvFile {
  ActionTable actions;
  std::vector<std::vector<int>> columns;  ///< Column of each action in the file, from 0.
  int stages = 0;                         ///< That compute something.
  int micro_batches = 0;                  ///< That something is computed on.
  bool communicates = false;              ///< Any action that is no computation.
};

/// A bad cell: level 1 of validation, with its place in the text.
struct CellProblem {
  ScheduleProblem problem;
  Where where;
  std::string help;
};

/// Reads either kind of file. Every cell, without quotes around it, must match in full, and be known to `version` when
/// one is given; those that are not are appended to `problems` and left out. A byte order mark in front is skipped.
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
/// micro-batches starts a chain of its own (pipelines in both directions). Problems of structure that make a plan
/// impossible, such as a stage on two ranks or a chain whose stages disagree, are appended to `problems`.
Plan implied_plan(const CsvSchedule&, std::vector<ScheduleProblem>& problems);

/// What `version` cannot express or would not run as meant, level 1, code "torch": recomputation, slices of a sequence,
/// pipelines in both directions, graphs and replicas of stages; OVERLAP_F_B in 2.8. Empty when it can be exported.
std::vector<ScheduleProblem> why_not_torch(const ActionTable&, const Plan&, int slices, TorchVersion version);

}  // namespace stagecraft
