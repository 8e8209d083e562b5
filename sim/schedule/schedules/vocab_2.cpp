#include "sim/schedule/vocabulary_order.hpp"

namespace stagecraft::schedules {
namespace {

Schedule vocab_2_whole(const ScheduleInput& in) { return order_with_vocabulary(in, VocabularyPasses::OneBarrier); }

}  // namespace

extern const ScheduleDef vocab_2{
    .name = "vocab-2",
    .summary =
        "1F1B whose ranks divide embedding and scores, with one barrier: p - r + 1 micro-batches in flight on rank r",
    .source = "Yeung et al., Balancing Pipeline Parallelism with Vocabulary Parallelism, arXiv 2411.05288, algorithm 2",
    .vocabulary = VocabularyPasses::OneBarrier,
    .placement = Placement::Linear,
    .fields = &vocabulary_order_fields,
    .read = read_vocabulary_order,
    .whole = vocab_2_whole,
};

}  // namespace stagecraft::schedules
