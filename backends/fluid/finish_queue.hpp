#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/core/numbers.hpp"

namespace stagecraft::fluid {

/// Flows by the time at which they will end, the soonest first and of equals the one with the lowest number. A heap of
/// four branches that knows where everybody is, because times change much more often than flows come and go.
class FinishQueue {
 public:
  double next_time() const { return heap_.empty() ? kInfinity : heap_.front().time; }
  /// Puts `flow` in, or moves it to another time.
  void set(int flow, double time);
  /// Takes the soonest out.
  int pop();

 private:
  struct Entry {
    double time;
    int flow;
    bool operator<(const Entry& other) const { return time != other.time ? time < other.time : flow < other.flow; }
  };
  static constexpr std::size_t kBranches = 4;
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();

  void put(std::size_t at, const Entry& entry);
  void rise(std::size_t at, const Entry& entry);
  void sink(std::size_t at, const Entry& entry);

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> place_;  ///< Of each flow in the heap.
};

}  // namespace stagecraft::fluid
