#pragma once

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// 1F1B with scores of a vocabulary that all ranks divide: the order of Vocab-1 (two barriers) and Vocab-2 (one). A
/// rank has at most p - r + 1 micro-batches in flight with one barrier, and one more with two.
void vocabulary_order(const RankInput&, int barriers, RankOps&);

/// Seconds from the end of the last forward of a micro-batch until all ranks have the input of its scores.
double broadcast_time(const ScheduleInput&);

/// The order of vocab-1 or vocab-2: that of vocabulary_order(), or with the option `order` that of another schedule
/// with two stages on each rank, in a V. There the gradients of each micro-batch are as many micro-batches later as
/// there are barriers, so that all ranks run its scores between, where the other schedule would run what comes next.
/// The rule for that is ours. A rank has `barriers` more micro-batches in flight, on both stages, than without.
Schedule order_with_vocabulary(const ScheduleInput&, VocabularyPasses);
extern const config::MapSpec vocabulary_order_fields;
void read_vocabulary_order(const config::Value&, ScheduleOptions&);

/// 1F1B in which all ranks run the scores of a micro-batch together, at the price of half as many more in flight.
void interlaced_order(const RankInput&, RankOps&);

}  // namespace stagecraft
