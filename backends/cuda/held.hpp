#pragma once

#include <memory>

#include "backends/cuda/enqueue.hpp"
#include "backends/cuda/ranks/host_clock.hpp"
#include "backends/cuda/repeat.hpp"

namespace stagecraft::cuda {

/// What a run holds on the device. Of one that is stuck nothing is given back: that would wait for ever.
struct Held {
  std::unique_ptr<Yard> yard;
  std::unique_ptr<Messages> messages;
  std::unique_ptr<Ranks> ranks;
  std::unique_ptr<real::Session> session;
  Marks marks;
  std::map<int, Anchor> anchors;       ///< Of each GPU, where processes have to agree on times.
  std::unique_ptr<Repeater> repeater;  ///< Null where iterations are not graphs.
};

}  // namespace stagecraft::cuda
