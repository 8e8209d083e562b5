#pragma once

#include <deque>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/gpu_runtime.hpp"
#include "backends/real/group_communicator.hpp"
#include "backends/real/layer_runs.hpp"

// Times parts of the work of a queue by events, for measurements of profiles.

namespace stagecraft::cuda {

inline double seconds_between(const Event& begin, const Event& end) { return 1e-3 * end.milliseconds_since(begin); }

/// Events around parts of the work of a queue. They are read when the device has come to them.
class Laps {
 public:
  Laps(GpuRuntime& runtime, int queue) : runtime_(runtime), queue_(queue) {}

  void start() {
    runtime_.queues().select(queue_);  // Events belong to the GPU that is current when they are made.
    laps_.emplace_back().begin.record(runtime_.queues().stream(queue_));
  }
  void stop() {
    runtime_.queues().select(queue_);
    laps_.back().end.record(runtime_.queues().stream(queue_));
  }
  double seconds(std::size_t lap) const { return seconds_between(laps_[lap].begin, laps_[lap].end); }

 private:
  struct Lap {
    Event begin{cudaEventDefault}, end{cudaEventDefault};
  };

  GpuRuntime& runtime_;
  int queue_;
  std::deque<Lap> laps_;
};

/// Times the operations of a device.
class DeviceStopwatch : public real::Stopwatch {
 public:
  DeviceStopwatch(GpuRuntime& runtime, int queue) : laps_(runtime, queue) {}

  void start(real::LayerPass part, std::size_t node) override {
    parts_.push_back({part, node});
    laps_.start();
  }
  void stop() override { laps_.stop(); }

  real::NodeTimes times(std::size_t nodes) const {
    real::NodeTimes times(nodes);
    for (std::size_t n = 0; n < parts_.size(); ++n)
      times.seconds_of(parts_[n].part, parts_[n].node) += laps_.seconds(n);
    return times;
  }

 protected:
  struct TimedPart {
    real::LayerPass part;
    std::size_t node;
  };
  Laps laps_;
  std::vector<TimedPart> parts_;  ///< By lap.
};

}  // namespace stagecraft::cuda
