// Messages in chunks that wait at ports, with the acknowledgements that go back: first come, first served where a link
// has `queue: fifo`; queue_network.cpp asks it.

#include "backends/fluid/queues.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stagecraft::fluid {
namespace {

/// An acknowledgement of 66 bytes for each two packets of 1514 takes this share of their time.
constexpr double kAcknowledgement = 33.0 / 1514;

/// Linux lets a connection have 1 / 1024 s of its pacing rate in the queue of its device's card, and that rate is twice
/// the window in a round trip (tcp_small_queue_check, tcp_update_pacing_rate). The window grows to twice the bytes S
/// that a connection has under way. If they wait in this queue alone, which sends R bytes a second, its length is Q = 2
/// * 2 S / (Q / R) / 1024 s.
double card_queue_limit(double bytes, double bandwidth) { return std::sqrt(bytes * bandwidth / 256); }

}  // namespace

Queues::Queues(const Cluster& cluster, std::span<const Route> routes, std::span<const std::int32_t> back)
    : back_(back.begin(), back.end()) {
  for (const Link& link : cluster.links) {
    Port port;
    port.bandwidth = link.bandwidth.value;
    port.has_one_queue = link.one_queue;
    port.is_half_duplex = link.duplex == Duplex::Half;
    ports_.insert(ports_.end(), 2, port);
  }
  first_.push_back(0);
  for (const Route& route : routes) {
    double window = kInfinity, rate = route.max_rate.value;
    for (const Hop& hop : route.hops) {
      const Link& link = cluster.links[hop.link];
      if (link.window.value > 0) window = std::min(window, link.window.value);
      if (link.duplex == Duplex::Unshared)
        rate = std::min(rate, link.bandwidth.value);
      else
        crossed_.push_back(2 * hop.link.value + (link.duplex == Duplex::Full && !hop.forward ? 1 : 0));
    }
    windows_.push_back(window);
    max_rates_.push_back(rate);
    first_.push_back(static_cast<std::uint32_t>(crossed_.size()));
  }
}

std::span<const std::int32_t> Queues::ports_of(const Chunk& chunk) const {
  const std::int32_t out = messages_[chunk.message].route, route = chunk.is_acknowledgement ? back_[out] : out;
  return std::span(crossed_).subspan(first_[route], first_[route + 1] - first_[route]);
}

/// The bandwidth of a medium counts what is left by acknowledgements.
double Queues::seconds(const Port& port, const Chunk& chunk) const {
  const double share = !chunk.is_acknowledgement ? 1 : port.is_half_duplex ? 0 : kAcknowledgement;
  return share * chunk.bytes / port.bandwidth;
}

void Queues::push(double time, std::int32_t port, const Chunk& chunk) {
  events_.push_back({time, sequence_++, port, chunk});
  std::push_heap(events_.begin(), events_.end());
}

void Queues::add(int owner, std::int32_t route, std::uint64_t bytes, double max_rate, double now) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(messages_.size()));
    messages_.emplace_back();
  }
  const std::int32_t number = free_.back();
  free_.pop_back();
  ++alive_;
  Message& message = messages_[number];
  message.owner = owner;
  message.route = route;
  message.left = message.coming = static_cast<double>(bytes);
  message.max_rate = std::min(max_rate, max_rates_[route]);
  message.next = now;
  const std::span<const std::int32_t> ports = ports_of({.message = number});
  message.card_queue_limit = ports.empty() ? kInfinity : card_queue_limit(message.left, ports_[ports[0]].bandwidth);
  message.next_starts.assign(ports.size(), 0);
  if (bytes == 0) return enqueue({.bytes = 0, .tail = now, .message = number}, now);
  inject(number, now);
}

/// Chunks leave as far as the rate and window of their message and the card of its device permit.
void Queues::inject(std::int32_t number, double now) {
  for (Message& m = messages_[number]; m.left > 0;) {
    const double bytes = std::min(m.left, kChunkBytes);
    if (m.in_card_queue > 0 && m.in_card_queue + bytes > m.card_queue_limit) return;
    if (m.under_way > 0 && m.under_way + bytes > windows_[m.route]) return;
    if (m.next > now) {
      if (!std::exchange(m.has_injection, true)) push(m.next, kInjects, {.message = number});
      return;
    }
    m.left -= bytes;
    m.under_way += bytes;
    m.in_card_queue += bytes;
    m.next = now + bytes / m.max_rate;
    enqueue({.bytes = bytes, .tail = m.next, .message = number}, now);
  }
}

/// The first byte of a chunk comes to a port, or to the end of its route.
void Queues::enqueue(const Chunk& chunk, double now) {
  const std::span<const std::int32_t> ports = ports_of(chunk);
  if (chunk.hop == ports.size()) return push(chunk.tail, kArrives, chunk);
  Port& port = ports_[ports[chunk.hop]];
  double virtual_start = 0;
  if (!port.has_one_queue && !chunk.is_acknowledgement && chunk.bytes > 0) {  // Start-time fair queueing.
    double& next = messages_[chunk.message].next_starts[chunk.hop];
    virtual_start = std::max(port.virtual_time, next);
    next = virtual_start + chunk.bytes;
  }
  port.waiting.push_back({virtual_start, sequence_++, ports[chunk.hop], chunk});
  std::push_heap(port.waiting.begin(), port.waiting.end());
  if (!port.is_sending) send_next(ports[chunk.hop], now);
}

void Queues::send_next(std::int32_t number, double now) {
  Port& port = ports_[number];
  port.is_sending = !port.waiting.empty() && port.bandwidth > 0;
  if (!port.is_sending) return;
  std::pop_heap(port.waiting.begin(), port.waiting.end());
  Chunk chunk = port.waiting.back().chunk;
  port.virtual_time = std::max(port.virtual_time, port.waiting.back().key);
  port.waiting.pop_back();
  const double free = now + seconds(port, chunk);
  chunk.tail = std::max(chunk.tail, free);
  push(free, number, chunk);
  ++chunk.hop;
  enqueue(chunk, now);
}

void Queues::transmitted(std::int32_t port, const Chunk& chunk, double now) {
  if (chunk.hop == 0 && chunk.bytes > 0 && !chunk.is_acknowledgement) {
    messages_[chunk.message].in_card_queue -= chunk.bytes;
    inject(chunk.message, now);
  }
  send_next(port, now);
}

void Queues::arrive(Chunk chunk, double now) {
  if (chunk.is_acknowledgement) return acknowledge(chunk, now);
  Message& m = messages_[chunk.message];
  m.coming -= chunk.bytes;
  if (m.coming == 0) {
    arrived_.push_back(m.owner);
    --alive_;
  }
  if (chunk.bytes == 0 || back_[m.route] < 0) return acknowledge(chunk, now);
  chunk.is_acknowledgement = true;
  chunk.hop = 0;
  enqueue(chunk, now);
}

void Queues::acknowledge(const Chunk& chunk, double now) {
  Message& m = messages_[chunk.message];
  m.under_way -= chunk.bytes;
  if (m.left > 0) return inject(chunk.message, now);
  if (m.under_way == 0) free_.push_back(chunk.message);
}

std::span<const int> Queues::advance(double now) {
  arrived_.clear();
  while (!events_.empty() && events_.front().key <= now) {
    const Entry event = events_.front();
    std::pop_heap(events_.begin(), events_.end());
    events_.pop_back();
    if (event.port == kInjects) {
      messages_[event.chunk.message].has_injection = false;
      inject(event.chunk.message, event.key);
    } else if (event.port == kArrives)
      arrive(event.chunk, event.key);
    else
      transmitted(event.port, event.chunk, event.key);
  }
  return arrived_;
}

void Queues::set_bandwidth(LinkId link, double bytes_per_second, double now) {
  for (const std::int32_t port : {2 * link.value, 2 * link.value + 1}) {
    ports_[port].bandwidth = bytes_per_second;
    if (!ports_[port].is_sending) send_next(port, now);
  }
}

}  // namespace stagecraft::fluid
