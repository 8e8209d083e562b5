#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"
#include "sim/report/report.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// One row for each instruction: id, instruction, kind, device, stream, stage, micro_batch, iteration, version, bytes,
/// start_ns, end_ns, critical (1 on the critical path). Times have three decimals, which is picoseconds.
std::string spans_csv(const Program&, const Timeline&, const Report&, const Cluster&);

/// One row for each change of a device's memory: device, time_ns, resident_bytes (what stays), stash_bytes,
/// received_bytes, outgoing_bytes. Devices that are not used have no rows; the others begin at time 0.
std::string memory_csv(const Program&, const Timeline&, const Report&, const Cluster&);

/// Chrome trace JSON for Perfetto: one track for each stream, so that slices never overlap, flow arrows from send to
/// receive, and one memory counter for each device. Streams "in no order" are spread over as many tracks as needed.
std::string chrome_trace(const Program&, const Timeline&, const Cluster&);

/// losses.csv: the loss of every iteration of a real run.
std::string losses_csv(const Learnt&);

}  // namespace stagecraft
