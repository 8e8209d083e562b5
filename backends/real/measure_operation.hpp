#pragma once

#include "backends/real/execute.hpp"

namespace stagecraft::real {

/// What an op of a stage takes beside its layers: the median op of a model whose layers take next to no time.
Seconds measure_operation(const std::function<Timeline(const Program&)>& run);

}  // namespace stagecraft::real
