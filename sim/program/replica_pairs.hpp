#pragma once

#include <cstddef>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Numbers the pairs of replicas of neighboring stages that have samples in common: edge by edge, then by the replica
/// that sends activations, then by the one that receives them. There are at most as many pairs as messages.
class ReplicaPairs {
 public:
  ReplicaPairs(const Plan&, int iterations);
  int index(int edge, int from, int to) const;
  /// Calls visit(edge, from, to) for all of them in order.
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t e = 0; e + 1 < first_row_.size(); ++e)
      for (std::size_t row = first_row_[e]; row < first_row_[e + 1]; ++row)
        for (std::size_t pair = first_[row]; pair < first_[row + 1]; ++pair)
          visit(static_cast<int>(e), static_cast<int>(row - first_row_[e]), to_[pair]);
  }

 private:
  std::vector<std::size_t> first_row_;  ///< [edge]: its first row; an edge has a row for each replica that sends.
  std::vector<std::size_t> first_;      ///< [row]: its first pair.
  std::vector<int> to_;                 ///< [pair]: the receiving replica, ascending in a row.
};

}  // namespace stagecraft
