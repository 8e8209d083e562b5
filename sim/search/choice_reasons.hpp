#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/output/choice_table.hpp"

namespace stagecraft {

/// Collects what explains the first row of a search.
class ChoiceReasons {
 public:
  void add(const Choice&);
  /// Plans on devices of these types were not simulated, because none has a smaller amount.
  void add_bound(const std::string& device_types, double amount);
  /// It fits in memory unless messages share links. Others that do not fit were not simulated.
  void add_unfit(const Choice&);
  void add_line(const std::string& line) { other_lines_.push_back(line); }
  void note(const std::string& not_tried) { not_tried_.push_back(not_tried); }

  /// Why the first row wins, why the next best loses, what devices of other types bring, which faster one does not
  /// fit, and what was not tried.
  /// `about_parts` explains the words of their parts of the network.
  std::vector<std::string> lines(const ChoiceTable&, const std::string& about_parts) const;

 private:
  std::vector<Choice> best_;  ///< The two best with different plans or orders.
  struct TypeAmounts {
    double simulated = kInfinity, bound = kInfinity;
  };
  std::map<std::string, TypeAmounts> by_types_;  ///< On devices of these types and parts no amount is smaller.
  std::optional<Choice> shortest_unfit_;         ///< Without contention.
  std::vector<std::string> other_lines_, not_tried_;
};

}  // namespace stagecraft
