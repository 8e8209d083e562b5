#pragma once

#include "sim/plan/msr/pipedream.hpp"

namespace stagecraft::msr {

/// The fastest pipeline on one level, found by looking at every division into stages and replicas; nothing when none is
/// allowed. Infeasible when there are more than `most` of them.
std::optional<FoundPipeline> search_all(const Workload&, const PipeDreamOptions&, std::int64_t most);
/// The same on devices of several types, with every choice of them for each stage.
std::optional<FoundPipeline> search_all(const MixedWork&, const PipeDreamOptions&, std::int64_t most);

}  // namespace stagecraft::msr
