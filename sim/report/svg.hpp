#pragma once

#include <span>
#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"
#include "sim/report/strip.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// The timeline as a picture in the look of the papers: one row for each used device, a box for each op with its
/// micro-batch, a thin line below it for each message while it is on its way. All iterations.
std::string timeline_svg(const Program&, const Timeline&, const Cluster&, const std::string& title);

/// The first iterations of several timelines in one picture, below each other on one time scale, with one legend.
std::string strips_svg(std::span<const Strip>, const Cluster&, const std::string& title);

}  // namespace stagecraft
