#pragma once

#include <vector>

#include "sim/schedule/synthesis/problem.hpp"

namespace stagecraft::synthesis {

/// A message between two stages, whatever the micro-batch.
struct Link {
  int stage = 0;
  double time = 0;
};

/// For want of room on the rank, the k-th F of a stage comes behind the (k - most)-th F, I or W of one of the rank.
struct Wait {
  int stage = 0;
  Kind kind = kForward;
  int most = 0;
};

/// What every order has in common, with the quickest replica of each stage.
struct Least {
  Least(const Problem&, const Limit&, bool split);

  double input(int s) const { return gradients[s] - weight[s]; }

  const Problem& problem;
  std::vector<StageTimes> times;
  std::vector<double> gradients, weight;          ///< Of each stage: I and W, or B if it is shorter; behind I.
  std::vector<double> trip;                       ///< From the start of F to the end of the same micro-batch's I.
  std::vector<std::vector<Link>> before, behind;  ///< Of each stage.
  std::vector<std::vector<Wait>> waits;           ///< Of each stage: what its F wait for.
  std::vector<std::vector<Wait>> waited;          ///< And what waits for a step of this kind of this stage.
  int most_micros = 0;

 private:
  void find_ahead();
  void measure_room(const Resource&);
  void add_wait(int stage, const Wait&);
  std::vector<std::vector<int>> ahead_;  ///< Of each stage: those of its rank on the way to it, with itself.
};

}  // namespace stagecraft::synthesis
