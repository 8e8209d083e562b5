#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// The devices of a plan by their places in the pipeline. All replicas of a pipeline rank that do the same are one
/// entry; replicas of another type, with other times or with other memory are entries of their own. Ranks are numbered
/// by their first stages. Times are the means of the devices of an entry, and memory is that of the fullest one.
std::vector<PipelineRank> pipeline_ranks(const Plan&, const Program&, const Report&, const Cluster&);

/// "PP 0 x 8 replicas x TP 8".
std::string label(const PipelineRank&);

}  // namespace stagecraft
