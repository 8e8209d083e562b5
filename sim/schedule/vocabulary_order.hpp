#pragma once

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// 1F1B with scores of a vocabulary that all ranks divide: the order of Vocab-1 (two barriers) and Vocab-2 (one). A
/// rank has at most p - r + 1 micro-batches in flight with one barrier, and one more with two.
void vocabulary_order(const RankInput&, int barriers, RankOps&);

/// 1F1B in which all ranks run the scores of a micro-batch together, at the price of half as many more in flight.
void interlaced_order(const RankInput&, RankOps&);

}  // namespace stagecraft
