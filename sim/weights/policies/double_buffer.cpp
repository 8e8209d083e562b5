#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

// W(u+1) = W(u) - step(mean gradient at W(u-1)) with W(-1) = W(0).
extern const WeightsDef double_buffer{
    .name = "2bw",
    .summary = "Two versions that take turns; every gradient is one update old",
    .source = "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021, section 3.1",
    .paper = {.forward = ForwardWeights::DoubleBuffer, .backward = BackwardWeights::SameAsForward},
};

}  // namespace stagecraft::weights
