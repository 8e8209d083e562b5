#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/file.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft::box {

/// A card (TAP) in the network namespace of this thread whose frames a process reads and writes.
OpenFile make_card(const std::string& name);

/// Cables with a latency: a frame that one card sends comes to the other that much later. Not every kernel can hold
/// frames back by itself (netem).
class LatencyRelay {
 public:
  void connect(OpenFile a, OpenFile b, Seconds latency);
  /// The latency of the cable that was connected as that one, from now on. Any thread may call it.
  void set_latency(std::size_t cable, Seconds latency);
  bool empty() const { return sides_.empty(); }
  /// Carries frames until `stop` can be read.
  void run(int stop);

 private:
  struct Frame {
    std::int64_t due = 0;  ///< Nanoseconds of CLOCK_MONOTONIC.
    std::string bytes;
  };
  struct Side {
    OpenFile from;
    int to = -1;
    std::shared_ptr<std::atomic<std::int64_t>> latency;  ///< Nanoseconds. Both directions share it.
    std::deque<Frame> under_way;
  };

  /// Frames keep their order, also when the latency becomes shorter.
  static void read_frames(Side&, std::int64_t now);
  static void write_frames(Side&, std::int64_t now);

  std::vector<Side> sides_;
};

}  // namespace stagecraft::box
