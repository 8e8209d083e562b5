// The memory of each device over time, from its buffers and their moments in the timeline, and its peak.

#include "sim/result/memory.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>

#include "sim/core/thread_scope.hpp"

namespace stagecraft {
namespace {

/// Times that differ by less than this part of themselves are one moment: two backends that compute the same times in
/// different ways differ by the rounding of their sums.
constexpr double kRounding = 1e-12;

constexpr std::size_t kBufferKinds = static_cast<std::size_t>(BufferKind::Host) + 1;

bool is_one_moment(double first, double later) { return later - first <= kRounding * later; }

struct Event {
  double time;
  const Buffer* buffer;
  bool takes;
};

/// Calls visit(time, events) for each moment, in order of time. What ends at a moment makes room for what starts then;
/// events of one moment are otherwise in the order of their buffers. Each list is usually in order of time already.
template <class Visit>
void for_each_moment(std::span<std::vector<Event>> lists, Visit&& visit) {
  constexpr auto is_earlier = [](const Event& a, const Event& b) { return a.time < b.time; };
  std::vector<std::span<const Event>> left;
  for (std::vector<Event>& list : lists) {
    if (!std::is_sorted(list.begin(), list.end(), is_earlier)) std::sort(list.begin(), list.end(), is_earlier);
    if (!list.empty()) left.emplace_back(list);
  }
  std::vector<Event> moment;
  while (!left.empty()) {
    double time = left.front().front().time;
    for (const std::span<const Event> list : left) time = std::min(time, list.front().time);
    moment.clear();
    for (std::span<const Event>& list : left)
      for (; !list.empty() && is_one_moment(time, list.front().time); list = list.subspan(1))
        moment.push_back(list.front());
    std::erase_if(left, [](std::span<const Event> list) { return list.empty(); });
    if (moment.size() > 1)
      std::sort(moment.begin(), moment.end(), [](const Event& a, const Event& b) {
        return a.takes != b.takes ? b.takes : std::less<>()(a.buffer, b.buffer);
      });
    visit(time, moment);
  }
}

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

template <class Visit>
void MemoryHistory::for_each_sample(DeviceId device, Visit&& visit) const {
  const std::uint32_t first = first_[device.value], last = first_[device.value + 1];
  // What is taken, then what is freed, of each kind.
  std::array<std::vector<Event>, 2 * kBufferKinds> events;
  std::vector<Buffer> buffers;
  buffers.reserve(last - first);
  // Two loops, because each waits for memory far apart: the processor then has many such reads under way at once.
  for (std::uint32_t i = first; i < last; ++i) buffers.push_back(program_->buffer_on(device, buffers_[i]));
  std::array<std::size_t, kBufferKinds> counts{};
  for (const Buffer& b : buffers) ++counts[static_cast<std::size_t>(b.kind)];
  for (std::size_t list = 0; list < events.size(); ++list) events[list].reserve(counts[list / 2]);
  for (const Buffer& b : buffers) {
    const double start = timeline_->start_of(b.allocated_by).value, end = timeline_->end_of(b.freed_by).value;
    if (is_one_moment(start, end)) continue;
    events[2 * static_cast<std::size_t>(b.kind)].push_back({start, &b, true});
    events[2 * static_cast<std::size_t>(b.kind) + 1].push_back({end, &b, false});
  }
  MemorySample now;
  const auto change = [&](const Event& e) {
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
      case BufferKind::Host:
        now.host += sign * e.buffer->size;
        break;
    }
    now.cause = e.takes ? e.buffer->allocated_by : e.buffer->freed_by;
  };
  for_each_moment(events, [&](double time, const std::vector<Event>& moment) {
    now.time = time;
    for (const Event& e : moment) change(e);
    visit(now);
  });
}

MemoryCurve MemoryHistory::curve(DeviceId device) const {
  MemoryCurve curve;
  for_each_sample(device, [&](const MemorySample& s) { curve.push_back(s); });
  return curve;
}

MemoryPeak MemoryHistory::peak(DeviceId device, const Cluster& cluster) const {
  MemoryPeak peak;
  peak.resident = program_->memory[device].total();
  peak.total = peak.resident;
  if (device.value < std::ssize(cluster.devices)) {
    peak.capacity = cluster.type_of(device).usable_memory();
    peak.reserved = cluster.type_of(device).memory_reserve;
  }
  for_each_sample(device, [&](const MemorySample& s) {
    peak.activations = std::max(peak.activations, s.activations);
    peak.host = std::max(peak.host, s.host);
    if (peak.resident + s.total() <= peak.total) return;
    peak.total = peak.resident + s.total();
    peak.stash = s.stash;
    peak.received = s.received;
    peak.outgoing = s.outgoing;
    peak.at = s.cause;
  });
  return peak;
}

IdVector<DeviceId, MemoryPeak> MemoryHistory::peaks(const Cluster& cluster) const {
  IdVector<DeviceId, MemoryPeak> peaks(program_->devices);
  run_parts(program_->size(), program_->devices, [&](int d) { peaks[DeviceId{d}] = peak(DeviceId{d}, cluster); });
  return peaks;
}

std::vector<Bytes> host_peaks(const Program& program, const Timeline& timeline, const Cluster& cluster) {
  std::vector<std::array<std::vector<Event>, 2>> events(cluster.memories.size());
  for (const Buffer& b : program.buffers) {
    if (b.kind != BufferKind::Host) continue;
    const CollectivePhase& phase = program.phases_of(program.collective(program.at(b.allocated_by))).front();
    for (std::int32_t k = 0; k < phase.routes; ++k) {  // One for each device that this one stands for.
      const int memory = cluster.devices[program.routes[phase.first_route + k].from].host_memory;
      events[memory][0].push_back({timeline.start[b.allocated_by], &b, true});
      events[memory][1].push_back({timeline.end[b.freed_by], &b, false});
    }
  }
  std::vector<Bytes> peaks(cluster.memories.size());
  if (!program.host_states.empty()) peaks = program.host_states;
  for (std::size_t m = 0; m < peaks.size(); ++m) {
    Bytes now = peaks[m];
    for_each_moment(events[m], [&](double, const std::vector<Event>& moment) {
      for (const Event& e : moment) {
        now += (e.takes ? 1.0 : -1.0) * e.buffer->size;
        peaks[m] = std::max(peaks[m], now);
      }
    });
  }
  return peaks;
}

}  // namespace stagecraft
