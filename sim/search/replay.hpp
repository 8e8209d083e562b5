#pragma once

#include <limits>
#include <set>
#include <utility>

#include "sim/experiment/run.hpp"
#include "sim/report/replay.hpp"

namespace stagecraft {

/// Links are shared there, and it is as fast as what the rows are ranked on.
inline constexpr const char* kReplayBackend = "fluid";
inline constexpr int kAllRows = std::numeric_limits<int>::max();

/// The result of a program on `fluid`, where messages share links. They are longer on their way there, so a program may
/// need more memory than a device has; then the result says so.
Replayed contended_result(const CompiledExperiment&);

/// Which rows are, so far, among the `most` with the shortest times: those are to be played again while their program
/// is there.
class Shortest {
 public:
  explicit Shortest(int most) : most_(most) {}
  bool takes(Seconds time);

 private:
  int most_;
  std::multiset<Seconds> times_;
};

}  // namespace stagecraft
