#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

// Nothing is in flight at an update, so the newest version is the only one.
extern const WeightsDef flush{
    .name = "flush",
    .summary = "One version: every iteration drains before its update",
    .source = "Huang et al., GPipe, NeurIPS 2019",
    .needs_flush = true,
    .paper = {},
};

}  // namespace stagecraft::weights
