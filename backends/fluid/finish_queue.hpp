#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/core/numbers.hpp"

namespace stagecraft::fluid {

/// Flows by the time at which they will end; of equal times the flow with the lowest number comes first. A heap with
/// four branches that knows the position of each flow, because times change much more often than flows start and end.
/// boost::heap::d_ary_heap, whose entries are nodes of a list, takes 1.1 to 1.5 times as long (16 to 16,384 flows).
class FinishQueue {
 public:
  double next_time() const { return heap_.empty() ? kInfinity : heap_.front().time; }
  /// Adds `flow`, or moves it to another time.
  void set(int flow, double time);
  /// Removes the flow that ends first.
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
  std::vector<std::uint32_t> place_;  ///< Position of each flow in the heap.
};

}  // namespace stagecraft::fluid
