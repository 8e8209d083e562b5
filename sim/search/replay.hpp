#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/output/choice_table.hpp"
#include "sim/output/contended_result.hpp"

// Simulates rows of a table again on `fluid`, where messages share links.

namespace stagecraft {

inline constexpr int kAllRows = std::numeric_limits<int>::max();

/// The result of a program on `fluid`, where messages share links. Messages take longer there, so a program may need
/// more memory than a device has; then the result says so.
/// `timeline`, if given, becomes that of the run.
ContendedResult contended_result(const CompiledExperiment&, std::optional<Timeline>* timeline = nullptr);

/// What a simulation says for a row of a table. Infeasible with the code "memory" where it does not fit.
void measure_row(RunRow&, const CompiledExperiment&, const Outcome&);

/// Says of each new row whether it is so far among the `limit` rows with the shortest times. Such a row is replayed at
/// once, because its program is still in memory.
class Shortest {
 public:
  explicit Shortest(int limit) : limit_(limit) {}
  bool takes(Seconds time);

 private:
  int limit_;
  std::multiset<Seconds> times_;
};

}  // namespace stagecraft
