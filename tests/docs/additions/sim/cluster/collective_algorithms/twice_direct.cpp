// The direct exchange with every phase repeated, so that all collectives take twice as long.

#include "sim/cluster/collective_algorithms/phase_writer.hpp"

namespace stagecraft::collective_algorithms {
namespace {

void write(CollectiveKind kind, PhaseWriter& w) {
  direct.write(kind, w);
  direct.write(kind, w);
}

}  // namespace

extern const CollectiveAlgorithm twice_direct{
    .name = "twice-direct",
    .summary = "Every member sends to each other one, and then again",
    .source = "an example",
    .write = write,
};

}  // namespace stagecraft::collective_algorithms
