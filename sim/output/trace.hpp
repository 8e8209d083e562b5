#pragma once

#include <optional>
#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// Micro-batches `first` to `last`, counted from 0 over all iterations.
struct MicroBatchRange {
  int first = 0, last = 0;
};

/// What a trace shows beyond the program: layers of the stages, and the use of links. Either may be absent.
struct TraceContext {
  const Plan* plan = nullptr;
  const Report* report = nullptr;
  /// Nothing: all of the run. Else these micro-batches, and what else starts between their first start and last end.
  std::optional<MicroBatchRange> range = {};
};

/// Chrome trace JSON for Perfetto: one track for each stream, so that slices never overlap, flow arrows from send to
/// receive, a memory counter for each device and a counter for each of the busiest links. Streams "in no order" are
/// spread over as many tracks as needed.
std::string chrome_trace(const Program&, const Timeline&, const Cluster&, const TraceContext& = {});

}  // namespace stagecraft
