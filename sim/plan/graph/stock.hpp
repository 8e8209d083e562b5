#pragma once

#include "sim/plan/graph/problem.hpp"

namespace stagecraft::graph {

/// Devices for the replicas of one stage.
struct Take {
  int choice = 0;  ///< Of Problem::replicas.
  int stock = 0;   ///< How many of each type.
};

/// How many devices of each type there are, as numbers from 0, none, to all(): with one type the number of devices.
/// What is within another number can be subtracted from it.
class Stock {
 public:
  explicit Stock(const Problem&);

  int all() const { return static_cast<int>(counts_.size()) - 1; }
  const std::vector<int>& of_type(int stock) const { return counts_[stock]; }
  bool within(int part, int whole) const;
  const std::vector<Take>& takes() const { return takes_; }

  /// Devices in terms of those of the first type: a device counts for as many as it does the whole model as fast as.
  double worth(int stock) const { return worth_[stock]; }
  /// Device seconds in those terms that a layer takes at least.
  double least_work(const Problem&, const Sums& layer) const;

 private:
  std::vector<std::vector<int>> counts_;
  std::vector<Take> takes_;
  std::vector<double> worth_;
};

}  // namespace stagecraft::graph
