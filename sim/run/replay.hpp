#pragma once

#include <limits>
#include <set>
#include <utility>

#include "sim/report/replay.hpp"
#include "sim/run/run.hpp"

namespace stagecraft {

/// Links are shared there, and it is as fast as what the rows are ranked on.
inline constexpr const char* kReplayBackend = "fluid";
inline constexpr int kAllRows = std::numeric_limits<int>::max();

/// The same program where messages share links. A row that needs more memory then, for messages that are longer on
/// their way, says so.
Replayed replayed(const Scenario&, const Prepared&);

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
