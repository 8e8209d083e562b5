#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

extern const WeightsDef vertical_sync{
    .name = "vertical-sync",
    .summary = "The same version on every stage, forward and backward: the one the first stage had",
    .source = "Narayanan et al., PipeDream, SOSP 2019, vertical sync",
    .paper = {.forward = ForwardWeights::Vertical, .backward = BackwardWeights::SameAsForward},
};

}  // namespace stagecraft::weights
