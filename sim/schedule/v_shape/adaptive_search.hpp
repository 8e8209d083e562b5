// The search of the schedule v-adaptive: the shortest rows from repeated patterns with limited activations. The other V
// schedules do not use it.

#pragma once

#include <array>
#include <vector>

#include "sim/schedule/rank_costs.hpp"
#include "sim/schedule/v_shape/rows.hpp"

namespace stagecraft {

/// What the search for rows knows of the work. Every message takes `hop`.
struct VWork {
  std::vector<std::vector<RankCost>> costs;  ///< [rank][chunk]
  double hop = 0;
  int micro_batches = 1;
  int ranks() const { return static_cast<int>(costs.size()); }
};

/// The longest time from the start of a rank's first pass to the end of its last, every pass as early as it can.
double span_of(const VRows&, const VWork&);

/// A lower bound of span_of() for every order with at most the given number of activations on a rank. Between the first
/// F0 of a rank and its first F1, I1 and I0 lies the whole way of micro-batch 0; until then the rank can only run
/// passes that do not need them and fit.
class VBound {
 public:
  explicit VBound(const VWork&);
  double operator()(int activations) const;

 private:
  double of_rank(int rank, int activations) const;

  VWork work_;
  std::vector<std::array<double, 3>> legs_;  ///< [rank]: from F0 to F1, from F1 to I1, from I1 to I0.
};

/// Up to this number of ranks every slope is tried.
constexpr int kVAllRanks = 32;

/// The shortest rows from a slope (patterns.hpp) with at most `max_peak` activations on a rank, the first among equals;
/// empty when no rows are found. Up to `all_ranks` ranks every slope is tried. For more ranks the search tries, for
/// each top and each pair of steps, the latest turn that fits; where an earlier turn makes the three best of these
/// shorter, it tries the others with as many steps down the ranks; and it tries turns next to the 16 best. These are
/// 100 to 300 rows and rarely more than 500 for any number of ranks. Each row takes O(ops), and so does the search.
///
/// Compared with all slopes on 134 random works with 33 to 96 ranks, half to three times as many micro-batches, memory
/// of 0.4 to 1, seconds of a pass 1.05 to 4 times apart and messages of 0 to 1: equal in 133, 1.0002 times as long in
/// one. On four with 128 ranks and 256 micro-batches: equal, in 2.4 s on average instead of 50 s. On 144 such works
/// with 48 to 96 ranks and 2 to 96 micro-batches repetitions() costs nothing compared with two repetitions for each
/// rank.
VRows shortest_rows(const VWork&, int max_peak, int all_ranks = kVAllRanks);

}  // namespace stagecraft
