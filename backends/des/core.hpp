#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/conditions.hpp"
#include "sim/core/numbers.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::des {

/// Carries bytes. Latency is paid before and is none of its business.
class Network {
 public:
  virtual ~Network() = default;
  /// `bytes` (never zero) leave now over `route`, an index into the routes that has hops, at `most` bytes in a second.
  /// `flow` is the number of the instruction that sends, or of the op whose traffic it is. When the last byte is there
  /// the network calls Core::flow_done, but not from in here.
  virtual void start(int flow, std::int32_t route, std::uint64_t bytes, double most) = 0;
};

/// Plays a Program on a Network. It knows what may start and when; whoever owns the clock drives it:
///
///   begin(0); then always the earlier of advance(next_time()) and the network's own next flow_done.
///
/// Network::start is called from begin and advance only, never from flow_done, so a network may call flow_done from
/// inside its own update. The same Program and the same answers of the network give the same times, bit for bit.
class Core {
 public:
  /// `routes` are those of routes_of(); `start` and `end` have one place for each instruction. All must outlive this,
  /// and so must `conditions`; without them all is as rated. `memory` are those of memory_routes(), or nothing.
  Core(const Program& program, std::span<const Route> routes, Network& network, std::span<double> start,
       std::span<double> end, const Conditions* conditions = nullptr, std::span<const std::int32_t> memory = {});

  void begin(double now);
  double next_time() const { return heap_.empty() ? kInfinity : heap_.front().time; }
  /// Handles every event at or before `now`.
  void advance(double now);
  void flow_done(int flow, double now);

  bool finished() const { return finished_ == program_.size(); }
  /// Throws Infeasible when something has not ended: "down" for what a change of the cluster holds up for ever, else
  /// "deadlock".
  void require_finished() const;
  void require_finished(const Cluster& cluster) const;

 private:
  enum class Shape : std::uint8_t { Alone, Pair, EagerSend, EagerReceive, Phased, Follower };

  /// What runs as one: an instruction, a rendezvous transfer or a collective, at the number of its first instruction.
  struct Node {
    double seconds = 0;                 ///< Of computation, or of a message's latency.
    std::uint32_t first_successor = 0;  ///< Up to that of the next node.
    std::int32_t left = 0;              ///< Waits not yet over; of a running phase: flows not yet there.
    std::int32_t leader = 0;
    std::int32_t link = -1;     ///< Of its first instruction.
    std::int32_t partner = -1;  ///< Of an eager send its receive, and the other way round. Of a collective its phase.
    Shape shape = Shape::Alone;
    bool flows = false;  ///< After `seconds`, bytes go over the network.
  };
  struct Event {
    double time;
    std::uint32_t sequence;  ///< Each node has one event, or one a phase, so 32 bits last.
    std::int32_t node;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
    }
  };

  void describe(std::size_t i);
  void describe_op(std::size_t i);
  void describe_end(std::size_t i, const Transfer& transfer);
  void describe_member(std::size_t i);
  void describe_phases();
  void link();
  void push(std::int32_t node, double time);
  void start_node(std::int32_t id);
  void start_in_conditions(std::int32_t id);
  void start_traffic(std::int32_t id);
  double ready_to_flow(const Node& node, std::span<const Route> ways, double latencies) const;
  std::span<const Route> ways_of(const CollectivePhase&) const;
  void next_phase(std::int32_t id);
  void start_bytes(std::int32_t id);
  void end_step(std::int32_t id);
  void finish(std::int32_t id);
  std::int32_t members(const Node& node) const;

  const Program& program_;
  std::span<const Route> routes_;
  Network& network_;
  std::span<double> start_, end_;
  const Conditions* conditions_;  ///< Null when all is as rated.
  std::span<const std::int32_t> memory_;
  std::vector<double> seconds_;           ///< Of the latencies of each phase, as rated.
  std::vector<Node> nodes_;               ///< One behind the last, for first_successor.
  std::vector<std::int32_t> successors_;  ///< Nodes that wait, in the order of their numbers.
  std::vector<Event> heap_;               ///< Ends of computations and latencies; the soonest in front.
  std::uint32_t sequence_ = 0;
  std::size_t finished_ = 0;
  double now_ = 0;
};

/// The time of what has not happened.
inline constexpr double kUnset = -1;

/// Throws Infeasible "deadlock" when some instruction has no end: how many, the first few of them, and what each waits
/// for.
void require_finished(const Program& program, std::span<const double> start, std::span<const double> end);

}  // namespace stagecraft::des
