#include "sim/weights/policy.hpp"

namespace stagecraft::weights {
namespace {

// Nothing is in flight at an update, so the newest version is the only one.
int newest(const VersionInput& in) { return in.updates_before; }
int one(const VersionInput&) { return 1; }

}  // namespace

extern const WeightsDef flush{
    .name = "flush",
    .summary = "One version: every iteration drains before its update",
    .source = "Huang et al., GPipe, NeurIPS 2019",
    .needs_flush = true,
    .forward = newest,
    .backward = newest,
    .copies = one,
};

}  // namespace stagecraft::weights
