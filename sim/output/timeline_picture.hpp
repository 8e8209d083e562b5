#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/output/drawings.hpp"
#include "sim/output/picture.hpp"
#include "sim/output/timeline_strip.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// The timeline in the style of the papers: a row for each used device, a box for each op with its micro-batch, a thin
/// line below it for each message while it is on its way, and a legend. Devices whose rows would be equal share one.
/// One iteration, or all of them without `iteration`.
Picture timeline_picture(const Program&, const Timeline&, const Cluster&, const std::string& title, const PictureSize&,
                         std::optional<int> iteration = {});

/// Several timelines in one picture with one time scale and one legend.
Picture strips_picture(std::span<const TimelineStrip>, const std::string& title, const PictureSize&);
/// Their first iterations.
Picture strips_picture(std::span<const Strip>, const Cluster&, const std::string& title, const PictureSize&);

/// Memory over time: a line for each used device, and the capacity. Devices with equal curves share a line; of more
/// than eight lines, those with the highest peaks are drawn.
Picture memory_picture(const Program&, const Timeline&, const Report&, const Cluster&, const std::string& title,
                       const PictureSize&);

}  // namespace stagecraft
