#pragma once

#include <map>
#include <string>

#include "sim/published/simulated_run.hpp"

namespace stagecraft {

/// Simulated runs by the hash of everything that they depend on, in a file, so that the next process need not simulate
/// them again. A file that is damaged, or that another build of the program wrote, is passed over and replaced.
class PredictionCache {
 public:
  /// Without a file: it lasts as long as the process.
  PredictionCache() = default;
  /// `build` is the build_name() of the program, because another build may predict otherwise. Without a file where the
  /// linker has not noted what tells builds apart.
  PredictionCache(std::string file, const std::string& build);
  /// predictions.csv in $XDG_CACHE_HOME/stagecraft, or in ~/.cache/stagecraft; without a file where neither variable is
  /// set.
  static PredictionCache of_user();

  const SimulatedRun* find(const std::string& hash) const;
  void add(const std::string& hash, const SimulatedRun&);
  /// Writes the file, if there are new runs. A file that cannot be written is not: the next process simulates again.
  void save();

 private:
  std::string file_, heading_;
  std::map<std::string, SimulatedRun> runs_;
  bool is_changed_ = false;
};

}  // namespace stagecraft
