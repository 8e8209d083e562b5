#pragma once

#include <span>
#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"
#include "sim/report/strip.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// The compute streams of one iteration as text, one row a device: micro-batch numbers where it works, dots where it
/// waits. `width` is the number of columns for the times.
std::string gantt(const Program&, const Timeline&, const Cluster&, int iteration, int width);

/// The first iterations of several timelines below each other, each under its title. All have one time scale, so that
/// what takes longer is longer; the longest takes at most `width` columns.
std::string gantt_strips(std::span<const Strip>, const Cluster&, int width);

}  // namespace stagecraft
