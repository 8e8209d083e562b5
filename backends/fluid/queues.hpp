#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::fluid {

/// What a chunk of a message has at most: four packets of Ethernet and TCP. A message of 16 MB has 2,763 chunks.
inline constexpr double kChunkBytes = 4 * 1448;

/// Messages in chunks that wait at ports. A port is what sends at one rate: a direction of a full-duplex link, or all
/// of a half-duplex link or shared medium. The ports of links with `queue: fifo` send chunks in the order in which they
/// come. Other ports serve messages in turn, and words and acknowledgements first.
///
/// The first byte of a chunk goes on to its next port as soon as it is sent, so that a message alone takes its bytes
/// over the lowest bandwidth of its route. A port is busy for the time that it needs itself: while the bytes of a chunk
/// come slowly, it sends others in between. Latencies are no part of this.
class Queues {
 public:
  /// `back` has the route of acknowledgements for each route, an index into `routes`; -1: there are none.
  Queues(const Cluster& cluster, std::span<const Route> routes, std::span<const std::int32_t> back);

  /// A message of `owner` that gets at most `max_rate` bytes in a second. A word has no bytes.
  void add(int owner, std::int32_t route, std::uint64_t bytes, double max_rate, double now);
  double next_time() const { return events_.empty() ? kInfinity : events_.front().key; }
  bool busy() const { return alive_ > 0; }
  /// Handles what happens until `now`. Gives the owners of messages whose last byte has come, until the next call.
  std::span<const int> advance(double now);
  void set_bandwidth(LinkId link, double bytes_per_second, double now);

 private:
  struct Chunk {
    double bytes = 0;
    double tail = 0;  ///< When its last byte comes.
    std::int32_t message = 0;
    std::uint32_t hop = 0;
    bool is_acknowledgement = false;  ///< It acknowledges a chunk with these bytes.
  };
  /// A chunk at its port, or what a port or a message does at some time.
  struct Entry {
    double key;  ///< The time; at a port its virtual start, which is zero for all where there is one queue.
    std::uint64_t sequence;
    std::int32_t port;
    Chunk chunk;
    bool operator<(const Entry& other) const {  // A heap has the first one in front.
      return key != other.key ? key > other.key : sequence > other.sequence;
    }
  };
  struct Port {
    double bandwidth = 0;
    bool has_one_queue = false, is_half_duplex = false;
    bool is_sending = false;
    double virtual_time = 0;  ///< The latest virtual start that it has served.
    std::vector<Entry> waiting;
  };
  struct Message {
    int owner = 0;
    std::int32_t route = 0;
    double left = 0;           ///< Bytes that have not left.
    double coming = 0;         ///< Bytes that have not come.
    double under_way = 0;      ///< Bytes that have left and are not acknowledged.
    double in_card_queue = 0;  ///< Bytes that its first port has not sent.
    double card_queue_limit = 0;
    double max_rate = 0;
    double next = 0;             ///< When its rate lets another chunk leave.
    bool has_injection = false;  ///< An event kInjects of this number waits; it is handled before the number is reused.
    std::vector<double> next_starts;  ///< By hop: the virtual start of its next chunk.
  };
  static constexpr std::int32_t kInjects = -1, kArrives = -2;  ///< In place of a port.

  std::span<const std::int32_t> ports_of(const Chunk& chunk) const;
  void push(double time, std::int32_t port, const Chunk& chunk);
  void inject(std::int32_t message, double now);
  void enqueue(const Chunk& chunk, double now);
  void send_next(std::int32_t port, double now);
  void transmitted(std::int32_t port, const Chunk& chunk, double now);
  void arrive(Chunk chunk, double now);
  void acknowledge(const Chunk& chunk, double now);
  double seconds(const Port& port, const Chunk& chunk) const;

  std::vector<Port> ports_;
  std::vector<std::uint32_t> first_;
  std::vector<std::int32_t> crossed_;  ///< Ports of route r: crossed[first[r] .. first[r + 1]).
  std::vector<std::int32_t> back_;
  std::vector<double> windows_, max_rates_;  ///< By route.
  std::vector<Message> messages_;
  std::vector<std::int32_t> free_;
  std::size_t alive_ = 0;
  std::vector<Entry> events_;
  std::uint64_t sequence_ = 0;
  std::vector<int> arrived_;
};

}  // namespace stagecraft::fluid
