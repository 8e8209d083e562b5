#pragma once

#include <string>
#include <vector>

#include "sim/sweep/table.hpp"

namespace stagecraft {

/// A path in which the points of a sweep differ: its values in the order of the sweep, and the number of each point's
/// value; -1: as in the base.
struct VariedPath {
  std::string path;
  std::vector<std::string> values;
  std::vector<int> value_of;  ///< [row of the table]
  bool is_number = true;      ///< Every value begins with a digit.
  /// It is varied to run on other devices: a part of the cluster, or how many devices a plan uses, unless each schedule
  /// has its own value.
  bool sets_devices = false;
};

/// The paths that vary, in the order in which points have them. One that follows another is none of them, such as
/// `plan.stages` with the stages that a schedule needs: some points lack it, and the value of the other path says which
/// value the rest has. The page of a sweep has the same rule.
std::vector<VariedPath> varied_paths(const SweepTable&);

}  // namespace stagecraft
