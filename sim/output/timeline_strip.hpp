#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/output/html.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft {

/// An op, or a message while it is on its way.
struct TimelineSpan {
  InstructionKind kind = InstructionKind::Forward;  ///< A message is Forward with activations, Backward with gradients.
  bool is_message = false;
  int micro_batch = 0;
  double start = 0, end = 0;
  std::string text;  ///< "0F3".
};

/// The ops of a device and the messages that it sends.
struct TimelineRow {
  std::string device;
  int count = 1;  ///< Devices with the same ops at the same times, this one included.
  std::vector<TimelineSpan> spans;
};

/// What is drawn of a timeline.
struct TimelineStrip {
  std::string title;
  std::vector<TimelineRow> rows;
  double length = 0;
};

/// One iteration, or all of them without `iteration`.
TimelineStrip timeline_strip(const Program&, const Timeline&, const Cluster&, const std::string& title,
                             std::optional<int> iteration);

/// The first iteration of a run that was written by `run --out`. InputError where its files cannot be read.
TimelineStrip timeline_strip(const KeptRun&, const std::string& title);

}  // namespace stagecraft
