#pragma once

#include "sim/schedule/v_times.hpp"

namespace stagecraft {

/// Up to so many ranks every slope is tried.
constexpr int kVAllRanks = 32;

/// The shortest rows from a slope (v_patterns.hpp) that keep at most so many activations on a rank, the first among
/// equals; none where no rows are found. Up to `all_ranks` ranks every slope is tried. For more, of those with the same
/// top and the same steps the one with the latest turn that fits; where the three best of these get shorter with an
/// earlier turn, the others with as many steps down the ranks; and turns next to the 16 best. These are 100 to 300 rows
/// and never many more than 500, however many ranks. Each takes O(ops), and so does the search.
///
/// Beside all slopes, on 134 random works with 33 to 96 ranks, half to three times as many micro-batches, memory of
/// 0.4 to 1, seconds of a pass 1.05 to 4 times apart and messages of 0 to 1: as short in 133, 1.0002 times as long in
/// one. On four with 128 ranks and 256 micro-batches: as short, in 2.4 s on average instead of 50 s. Of 144 such
/// works with 48 to 96 ranks and 2 to 96 micro-batches all are as short as with two repetitions of the pattern for each
/// rank (v_repeat.hpp).
VRows shortest_rows(const VWork&, int most, int all_ranks = kVAllRanks);

}  // namespace stagecraft
