#pragma once

#include <functional>

#include "sim/planners/chain_partition/pipedream.hpp"

namespace stagecraft::chain_partition {

/// Seconds between two micro-batches of these stages; infinite where they are not allowed.
using PipelinePeriod = std::function<double(const std::vector<FoundStage>&)>;

/// The fastest pipeline on one level, found by trying every division into stages and replicas; nothing when none is
/// allowed. Infeasible when there are more than `max_divisions` divisions.
std::optional<FoundPipeline> search_all(const Workload&, const PipeDreamOptions&, std::int64_t max_divisions);
/// The fastest pipeline on devices of several types; also tries every choice of devices for each stage. Without
/// `period` it is PipeDream's.
std::optional<FoundPipeline> search_all(const MixedWork&, const PipeDreamOptions&, std::int64_t max_divisions,
                                        const PipelinePeriod& period = {});

}  // namespace stagecraft::chain_partition
