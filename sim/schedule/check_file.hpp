#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/comms.hpp"
#include "sim/schedule/csv.hpp"
#include "sim/schedule/rendezvous.hpp"
#include "sim/schedule/stash.hpp"

namespace stagecraft {

struct FileCheckOptions {
  std::optional<TorchVersion> torch = {};            ///< The file is for it; else for any.
  std::optional<RendezvousOptions> rendezvous = {};  ///< Simulate the messages; a compute-only file gets them first.
  CommsPlacement placement = CommsPlacement::Lowered;
  StashModel memory = {};
  int slices = 1;
  bool trains = true;
  bool lint = false;
};

/// A file and all that is wrong with it.
struct CheckedFile {
  CsvFile csv;
  CsvSchedule compute;
  Plan plan;
  std::vector<CellProblem> cells;         ///< Level 1, with places in the text.
  std::vector<ScheduleProblem> problems;  ///< Of the first level that fails; columns are those of the file.
  std::vector<ScheduleProblem> warnings;

  bool good() const { return cells.empty() && problems.empty(); }
};

/// Levels 1 to 8, and 10 when asked for; each only when those before hold. Never throws for what stands in the file.
CheckedFile check_file(std::string_view text, const std::string& file, const FileCheckOptions&);

}  // namespace stagecraft
