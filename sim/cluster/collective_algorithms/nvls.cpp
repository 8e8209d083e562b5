// The collective algorithm `NVLS`: NVSwitch sums and copies in the switch (NVLink SHARP), so each member sends and
// receives its array about once. Its times depend on channels and the generation of the switch, which no figure of a
// cluster states yet, so it is refused.

#include "sim/cluster/collective_algorithms/phase_writer.hpp"

namespace stagecraft::collective_algorithms {
namespace {

void write_nvls(CollectiveKind, PhaseWriter& w) { w.refuse("its times on NVSwitch are not modeled yet"); }

}  // namespace

extern const CollectiveAlgorithm nvls{
    .name = "NVLS",
    .summary = "NVSwitch sums and copies arrays; refused, because its times are not modeled yet",
    .source = "NCCL's NVLink SHARP",
    .write = write_nvls,
};

}  // namespace stagecraft::collective_algorithms
