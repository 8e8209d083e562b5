#pragma once

#include <map>
#include <memory>

#include "backends/cuda/enqueue.hpp"
#include "backends/cuda/queues.hpp"
#include "backends/cuda/ranks/heartbeat_monitor.hpp"
#include "backends/cuda/repeat.hpp"
#include "backends/cuda/run.hpp"
#include "backends/real/device_placement.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft::cuda {

/// One moment, on the clock of a GPU and on the steady clock of this machine.
struct Anchor {
  std::shared_ptr<const Event> event;
  double seconds = 0, uncertainty = 0;

  double seconds_at(const Event& later) const { return seconds + 1e-3 * later.milliseconds_since(*event); }
  /// Seconds of the machine in a second of the GPU, from this anchor to a later one; their clocks drift by some 10 us a
  /// second at most.
  double rate_to(const Anchor& later) const {
    const double on_gpu = 1e-3 * later.event->milliseconds_since(*event);
    return on_gpu > 0 ? (later.seconds - seconds) / on_gpu : 1;
  }
};

/// Reads the host clock for each GPU with queues, which must be idle: the fastest of many events counts.
std::map<int, Anchor> read_host_clocks(const Queues&);

/// What a run holds on the device. A stuck run releases none of it, because releasing would block.
struct RunState {
  std::unique_ptr<GpuRuntime> runtime;
  std::unique_ptr<Messages> messages;
  std::unique_ptr<NcclCommunicators> ranks;
  std::unique_ptr<real::Session> session;
  InstructionEvents events;
  std::map<int, Anchor> anchors;       ///< One for each GPU before the run, if processes must agree on times.
  std::map<int, Anchor> last_anchors;  ///< One for each GPU after the run.
  std::unique_ptr<Repeater> repeater;  ///< Null where iterations are not graphs.
};

constexpr double kMostPatience = 300;  ///< Seconds for what is not part of the program, as evaluations.

/// Times of the instructions in this process, on the clock of the machine, against which each GPU's clock was read
/// right before the run and after it; both are taken to drift evenly in between. Where only iterations are timed,
/// spread them when all processes are known.
real::Times times_of(const Program&, const real::DevicePlacement&, const RunState&);

/// The part of this process in a run, while others do theirs; the whole timeline is on the first of them. `perform`
/// plays the program, and reads the anchors of what is held right before the gates.
Timeline run_together(const Program&, const real::DevicePlacement&, RunState&, const Options&,
                      const std::function<void(HeartbeatMonitor&)>& perform);

}  // namespace stagecraft::cuda
