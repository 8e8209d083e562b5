#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

// The window of the average is a reading of the paper's text: it is as long as the delay.
extern const WeightsDef layerpipe2{
    .name = "layerpipe2",
    .summary = "One version; the backward goes back by an average of the gradients since",
    .source = "LayerPipe2: Multistage Pipelining and Weight Recompute via Improved EMA, 2025",
    .paper = {.backward = BackwardWeights::Reconstruct, .reconstruction = Reconstruction::GradientAverage},
};

}  // namespace stagecraft::weights
