#include "sim/schedule/vocabulary_order.hpp"

namespace stagecraft::schedules {

extern const ScheduleDef interlaced{
    .name = "interlaced",
    .summary = "1F1B whose ranks stop together for the scores that they divide: 3p/2 - r micro-batches in flight",
    .source = "Lin et al., nnScaler, OSDI 2024; sail-sg/VocabularyParallelism",
    .vocabulary = VocabularyPasses::TwoBarriers,
    .placement = Placement::Linear,
    .rank = interlaced_order,
};

}  // namespace stagecraft::schedules
