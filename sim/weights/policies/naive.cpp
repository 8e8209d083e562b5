#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

extern const WeightsDef naive{
    .name = "naive",
    .summary = "One version, whatever is in flight: a backward may use other weights than its forward",
    .source = "the baseline of Chen et al., SpecTrain, 2018, and of Kosson et al., MLSys 2021",
    .paper = {},
};

}  // namespace stagecraft::weights
