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

/// The shortest of all choices that were simulated, those too that another covers: where messages share links one of
/// them may be better.
class ShortestChoices {
 public:
  explicit ShortestChoices(std::size_t most) : most_(most) {}
  void add(const Choice&);
  const std::vector<Choice>& list() const { return list_; }

 private:
  std::size_t most_;
  std::vector<Choice> list_;  ///< By period; of equal ones the smaller first.
};

/// Plays the first rows of the front again, of all and of those that stand out, and as many of `shortest`, sorts by the
/// periods then, and takes up those of `shortest` that nothing covers any more.
void replay_choices(ChoiceTable&, int rows, const std::vector<Choice>& shortest,
                    const std::function<Replayed(const Choice&)>& replay);

}  // namespace stagecraft
