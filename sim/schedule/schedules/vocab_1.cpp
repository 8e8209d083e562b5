#include "sim/schedule/vocabulary_order.hpp"

namespace stagecraft::schedules {
namespace {

Schedule vocab_1_whole(const ScheduleInput& in) { return order_with_vocabulary(in, VocabularyPasses::TwoBarriers); }

}  // namespace

extern const ScheduleDef vocab_1{
    .name = "vocab-1",
    .summary =
        "1F1B whose ranks divide embedding and scores, with two barriers: p - r + 2 micro-batches in flight on rank r",
    .source = "Yeung et al., Balancing Pipeline Parallelism with Vocabulary Parallelism, arXiv 2411.05288, algorithm 1",
    .vocabulary = VocabularyPasses::TwoBarriers,
    .placement = Placement::Linear,
    .fields = &vocabulary_order_fields,
    .read = read_vocabulary_order,
    .whole = vocab_1_whole,
};

}  // namespace stagecraft::schedules
