#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule_file/checks.hpp"
#include "sim/schedule_file/comms.hpp"
#include "sim/schedule_file/csv.hpp"

// Levels 1 to 8 and 10 of the checks of an order in PyTorch's CSV text, for `schedule`, `import` and `export`.

namespace stagecraft {

struct FileCheckOptions {
  std::optional<TorchVersion> torch = {};            ///< The version that the file is for; nothing: any.
  std::optional<RendezvousOptions> rendezvous = {};  ///< Check the messages; a compute-only file gets them first.
  CommsPlacement placement = CommsPlacement::Lowered;
  StashModel memory = {};
  int slices = 1;
  bool trains = true;
  bool lint = false;
};

/// A file and everything that is wrong with it.
struct CheckedFile {
  CsvFile csv;
  CsvSchedule compute;
  Plan plan;
  std::vector<CellProblem> cells;         ///< Level 1, with places in the text.
  std::vector<ScheduleProblem> problems;  ///< The first level that fails; columns count as in the file.
  std::vector<ScheduleProblem> warnings;

  bool good() const { return cells.empty() && problems.empty(); }
};

/// Checks levels 1 to 8, and 10 when asked for; each only when the levels before it hold. Never throws because of what
/// the file contains.
CheckedFile check_file(std::string_view text, const std::string& file, const FileCheckOptions&);

}  // namespace stagecraft
