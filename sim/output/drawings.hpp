#pragma once

#include <span>
#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/output/text_layout.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft {

/// One of several timelines whose first iterations are drawn below each other on one time scale.
struct Strip {
  std::string title;
  const Program& program;
  const Timeline& timeline;
};

/// The compute streams of one iteration as text, one row for each device: micro-batch numbers where it computes, dots
/// where it waits. `width` is the number of columns for the times.
std::string gantt(const Program&, const Timeline&, const Cluster&, int iteration, int width);
/// A line that explains the characters of gantt() for the ops that these programs have.
std::string gantt_legend(std::span<const Strip>);
/// The `usual` width of gantt(), or less where its lines would be longer than the layout permits.
int gantt_width(const Cluster&, int usual, const TextLayout&);

/// The first iterations of several timelines, each under its title. The longest takes `width` columns at most, and
/// all have its time scale.
std::string gantt_strips(std::span<const Strip>, const Cluster&, int width);

}  // namespace stagecraft
