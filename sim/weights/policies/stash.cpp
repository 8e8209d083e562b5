#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

extern const WeightsDef stash{
    .name = "stash",
    .summary = "The newest version forward, and the same one kept for the backward",
    .source = "Narayanan et al., PipeDream, SOSP 2019, weight stashing",
    .paper = {.backward = BackwardWeights::SameAsForward},
};

}  // namespace stagecraft::weights
