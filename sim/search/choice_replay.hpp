#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/report/choice_table.hpp"

namespace stagecraft {

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
