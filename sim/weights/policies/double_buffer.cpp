#include <algorithm>

#include "sim/weights/policy.hpp"

namespace stagecraft::weights {
namespace {

// Micro-batch q of iteration u = q / m reads version max(0, u - 1), forward and backward, on every stage:
// W(u+1) = W(u) - step(mean gradient at W(u-1)) with W(-1) = W(0).
int one_behind(const VersionInput& in) { return std::max(0, in.micro / in.micro_batches - 1); }
int two(const VersionInput&) { return 2; }

}  // namespace

extern const WeightsDef double_buffer{
    .name = "2bw",
    .summary = "Two versions that take turns; every gradient is one update old",
    .source = "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021, section 3.1",
    .forward = one_behind,
    .backward = one_behind,
    .copies = two,
};

}  // namespace stagecraft::weights
