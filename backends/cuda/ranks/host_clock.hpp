#pragma once

#include <map>
#include <memory>

#include "backends/cuda/queues.hpp"

namespace stagecraft::cuda {

/// One moment, on the clock of a GPU and on the steady clock of this machine.
struct Anchor {
  std::shared_ptr<const Event> event;
  double seconds = 0, uncertainty = 0;

  double of(const Event& later) const { return seconds + 1e-3 * later.milliseconds_since(*event); }
};

/// Of each GPU that has queues, which have to be idle. Of many events the one that was over fastest counts.
std::map<int, Anchor> read_host_clocks(const Queues&);

}  // namespace stagecraft::cuda
