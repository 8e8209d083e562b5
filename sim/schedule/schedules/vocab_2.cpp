#include "sim/schedule/vocabulary_order.hpp"

namespace stagecraft::schedules {
namespace {

void vocab_2_order(const RankInput& in, RankOps& ops) { vocabulary_order(in, 1, ops); }

}  // namespace

extern const ScheduleDef vocab_2{
    .name = "vocab-2",
    .summary =
        "1F1B whose ranks divide embedding and scores, with one barrier: p - r + 1 micro-batches in flight on rank r",
    .source = "Yeung et al., Balancing Pipeline Parallelism with Vocabulary Parallelism, arXiv 2411.05288, algorithm 2",
    .vocabulary = VocabularyPasses::OneBarrier,
    .placement = Placement::Linear,
    .rank = vocab_2_order,
};

}  // namespace stagecraft::schedules
