#pragma once

#include <string>

namespace stagecraft {

/// What changes from one configuration of a framework to another, as their exporters write them, in the words of the
/// framework: "--tp-comm-overlap", "--context-parallel-size 2, without --use-distributed-optimizer",
/// "parallelism.context_parallel_degree = 2" or "zero_optimization.stage: 3". Empty where nothing does.
std::string framework_changes(const std::string& before, const std::string& after);

}  // namespace stagecraft
