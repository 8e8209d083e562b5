#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/plan/message_buffers.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/stage_costs.hpp"
#include "sim/program/program.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft {

/// Which communication of a device waits for which.
enum class StreamModel : std::uint8_t {
  Single,     ///< One communication stream a device.
  Pair,       ///< One for each peer.
  Direction,  ///< One for each peer and direction.
  None,       ///< No order at all: every transfer is a pure delay.
};

struct LoweringOptions {
  bool overlap = true;     ///< Communication overlaps computation; false: it blocks it, adjacent messages in one group.
  bool rendezvous = true;  ///< False: eager.
  StreamModel streams = StreamModel::Direction;
  bool fifo_sends = true;  ///< A device sends one message at a time, in program order.
  int iterations = 1;
  std::vector<int> node_of = {};  ///< Node of each device, for collectives inside ops; empty: all are on one.
  bool gradient_slots = false;    ///< Gradients of the micro-batches of an update are kept apart until it.
  int optimizer_states = 2;       ///< Tensors of the size of the weights that the optimizer keeps: Adam's two.
  bool keeps_momentum = false;    ///< One of them is the momentum of the bare gradients.
  MessageBuffers buffers = {};    ///< Messages that devices hold; a limit needs rendezvous.
  bool handshakes = false;        ///< See Program::handshakes.
};

/// Adds everything a schedule leaves out: sends, receives, all-reduces, buffers, weight versions, predictions.
///
/// Throws Infeasible "cycle" when the order of work itself can never run, and "deadlock" when only the communication
/// or a lack of buffers blocks; both name the shortest cycle; and "weights" when an op would read a version that is not
/// made before it. O(ops log devices).
Program lower(const Schedule&, const Plan&, const StageCosts&, const WeightsRule&, const LoweringOptions&);

}  // namespace stagecraft
