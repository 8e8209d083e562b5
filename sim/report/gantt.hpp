#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// The compute streams of one iteration as text, one row a device: micro-batch numbers where it works, dots where it
/// waits. `width` is the number of columns for the times.
std::string gantt(const Program&, const Timeline&, const Cluster&, int iteration, int width);

}  // namespace stagecraft
