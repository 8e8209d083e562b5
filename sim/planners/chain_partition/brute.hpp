#pragma once

#include "sim/planners/chain_partition/pipedream.hpp"

namespace stagecraft::chain_partition {

/// The fastest pipeline on one level, found by trying every division into stages and replicas; nothing when none is
/// allowed. Infeasible when there are more than `max_divisions` divisions.
std::optional<FoundPipeline> search_all(const Workload&, const PipeDreamOptions&, std::int64_t max_divisions);
/// The fastest pipeline on devices of several types; also tries every choice of devices for each stage.
std::optional<FoundPipeline> search_all(const MixedWork&, const PipeDreamOptions&, std::int64_t max_divisions);

}  // namespace stagecraft::chain_partition
