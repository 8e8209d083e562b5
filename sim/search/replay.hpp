#pragma once

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/report/choice_table.hpp"
#include "sim/report/replay.hpp"

namespace stagecraft {

inline constexpr int kAllRows = std::numeric_limits<int>::max();

/// The result of a program on `fluid`, where messages share links. Messages take longer there, so a program may need
/// more memory than a device has; then the result says so.
ContendedResult contended_result(const CompiledExperiment&);

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

/// Keeps the `limit` fastest of all simulated choices, dominated ones included, because contention may reorder them.
class ShortestChoices {
 public:
  explicit ShortestChoices(std::size_t limit) : limit_(limit) {}
  void add(const Choice&);
  const std::vector<Choice>& list() const { return list_; }

 private:
  std::size_t limit_;
  std::vector<Choice> list_;  ///< Sorted by period; of equally fast choices the smaller one comes first.
};

/// Replays the first `rows` rows of the front, the first `rows` rows that stand out, and the first `rows` of
/// `shortest`. Adds each choice of `shortest` that no row covers with contention, and sorts the front by the replayed
/// periods.
void replay_choices(ChoiceTable&, int rows, const std::vector<Choice>& shortest,
                    const std::function<ContendedResult(const Choice&)>& replay);

}  // namespace stagecraft
