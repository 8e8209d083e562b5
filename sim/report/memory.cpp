#include "sim/report/memory.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

struct Event {
  double time;
  const Buffer* buffer;
  bool takes;

  bool operator<(const Event& other) const { return time < other.time; }
};

}  // namespace

MemoryHistory::MemoryHistory(const Program& program, const Timeline& timeline)
    : program_(&program), timeline_(&timeline) {
  first_.assign(program.devices + 1, 0);
  for_each_buffer(program, [&](std::uint32_t, DeviceId device) { ++first_[device.value + 1]; });
  for (std::size_t d = 1; d < first_.size(); ++d) first_[d] += first_[d - 1];
  buffers_.resize(first_.back());
  auto next = first_;
  for_each_buffer(program, [&](std::uint32_t b, DeviceId device) { buffers_[next[device.value]++] = b; });
}

MemoryCurve MemoryHistory::curve(DeviceId device) const {
  const std::uint32_t first = first_[device.value], last = first_[device.value + 1];
  std::vector<Event> takes, frees, events;
  takes.reserve(last - first), frees.reserve(last - first), events.reserve(2 * (last - first));
  std::vector<Buffer> buffers;
  buffers.reserve(last - first);
  // Two loops, because each waits for memory far apart: the processor then has many such reads under way at once.
  for (std::uint32_t i = first; i < last; ++i) buffers.push_back(program_->buffer_on(device, buffers_[i]));
  for (const Buffer& b : buffers) {
    const double start = timeline_->start_of(b.allocated_by).value, end = timeline_->end_of(b.freed_by).value;
    if (start >= end) continue;
    takes.push_back({start, &b, true});
    frees.push_back({end, &b, false});
  }
  for (std::vector<Event>* list : {&takes, &frees})
    if (!std::is_sorted(list->begin(), list->end())) std::stable_sort(list->begin(), list->end());
  // What ends at a moment makes room for what starts then.
  std::merge(frees.begin(), frees.end(), takes.begin(), takes.end(), std::back_inserter(events));
  MemoryCurve curve;
  MemorySample now;
  for (const Event& e : events) {
    const double sign = e.takes ? 1 : -1;
    switch (e.buffer->kind) {
      case BufferKind::Stash:
        now.activations += e.takes ? 1 : -1;
        [[fallthrough]];
      case BufferKind::Boundary:
        now.stash += sign * e.buffer->size;
        break;
      case BufferKind::Received:
        now.received += sign * e.buffer->size;
        break;
      case BufferKind::Outgoing:
        now.outgoing += sign * e.buffer->size;
        break;
    }
    now.cause = e.takes ? e.buffer->allocated_by : e.buffer->freed_by;
    const bool same_moment = !curve.empty() && now.time == e.time;
    now.time = e.time;
    if (same_moment)
      curve.back() = now;
    else
      curve.push_back(now);
  }
  return curve;
}

MemoryPeak peak_of(const MemoryCurve& curve, const Program& program, const Cluster& cluster, DeviceId device) {
  MemoryPeak peak;
  peak.resident = program.memory[device].total();
  peak.total = peak.resident;
  if (device.value < std::ssize(cluster.devices)) {
    peak.capacity = cluster.type_of(device).usable_memory();
    peak.reserved = cluster.type_of(device).memory_reserve;
  }
  for (const MemorySample& s : curve) {
    peak.activations = std::max(peak.activations, s.activations);
    if (peak.resident + s.total() <= peak.total) continue;
    peak.total = peak.resident + s.total();
    peak.stash = s.stash;
    peak.received = s.received;
    peak.outgoing = s.outgoing;
    peak.at = s.cause;
  }
  return peak;
}

}  // namespace stagecraft
