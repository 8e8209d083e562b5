#include "sim/schedule/vocabulary_order.hpp"

namespace stagecraft::schedules {
namespace {

void vocab_1_order(const RankInput& in, RankOps& ops) { vocabulary_order(in, 2, ops); }

}  // namespace

extern const ScheduleDef vocab_1{
    .name = "vocab-1",
    .summary =
        "1F1B whose ranks divide embedding and scores, with two barriers: p - r + 2 micro-batches in flight on rank r",
    .source = "Yeung et al., Balancing Pipeline Parallelism with Vocabulary Parallelism, arXiv 2411.05288, algorithm 1",
    .vocabulary = VocabularyPasses::TwoBarriers,
    .placement = Placement::Linear,
    .rank = vocab_1_order,
};

}  // namespace stagecraft::schedules
