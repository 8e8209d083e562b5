// A heap of transfers by the time at which they end, in which each can move when its rate changes.

#include "backends/fluid/finish_queue.hpp"

#include <algorithm>

namespace stagecraft::fluid {

void FinishQueue::put(std::size_t at, const Entry& entry) {
  heap_[at] = entry;
  place_[entry.flow] = static_cast<std::uint32_t>(at);
}

void FinishQueue::rise(std::size_t at, const Entry& entry) {
  while (at > 0) {
    const std::size_t above = (at - 1) / kBranches;
    if (!(entry < heap_[above])) break;
    put(at, heap_[above]);
    at = above;
  }
  put(at, entry);
}

void FinishQueue::sink(std::size_t at, const Entry& entry) {
  for (;;) {
    const std::size_t first = kBranches * at + 1, last = std::min(first + kBranches, heap_.size());
    if (first >= last) break;
    std::size_t smallest = first;
    for (std::size_t i = first + 1; i < last; ++i)
      if (heap_[i] < heap_[smallest]) smallest = i;
    if (!(heap_[smallest] < entry)) break;
    put(at, heap_[smallest]);
    at = smallest;
  }
  put(at, entry);
}

void FinishQueue::set(int flow, double time) {
  const std::size_t f = flow;
  if (f >= place_.size()) place_.resize(f + 1, kAbsent);
  const Entry entry{time, flow};
  if (place_[f] == kAbsent) {
    heap_.push_back(entry);
    return rise(heap_.size() - 1, entry);
  }
  const std::size_t at = place_[f];
  if (entry < heap_[at])
    rise(at, entry);
  else
    sink(at, entry);
}

int FinishQueue::pop() {
  const int flow = heap_.front().flow;
  place_[flow] = kAbsent;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sink(0, last);
  return flow;
}

}  // namespace stagecraft::fluid
