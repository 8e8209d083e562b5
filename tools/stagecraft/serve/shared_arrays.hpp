#pragma once

#include <string>

#include "sim/core/file.hpp"
#include "sim/core/json.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "sim/result/memory.hpp"

namespace stagecraft::serve {

/// Arrays in memory that another process maps: an anonymous file, which lives as long as anyone has it open or mapped.
struct SharedArrays {
  OpenFile file;
  /// "path" and "bytes" of the file, and its "columns": each has a name, a table, and `offset`, `stride`, `count` and
  /// `dtype` in the words of NumPy.
  Json layout;
};

/// The tables "instructions", with one row for each instruction, and with `memory` also "memory", with one row for each
/// change of the memory of a device; "memory_first" has the first row of each device, and then their number.
SharedArrays share_arrays(const Program&, const Timeline&, bool memory);

}  // namespace stagecraft::serve
