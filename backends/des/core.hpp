#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/conditions.hpp"
#include "sim/core/numbers.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::des {

/// Carries bytes. Core accounts for latency before it starts a flow.
class Network {
 public:
  virtual ~Network() = default;
  /// `bytes` leave now over `route`, an index into the routes that has hops, at most `max_rate` bytes in a second. Only
  /// a word of a handshake that takes queues has no bytes. `flow` is the number of the instruction that sends, of the
  /// receive whose word it is, of the first member of a collective, whose flows share it, or of the op whose traffic it
  /// is. When the last byte is there the network calls Core::flow_done, but not from in here.
  virtual void start(int flow, std::int32_t route, std::uint64_t bytes, double max_rate) = 0;
};

/// Plays a Program on a Network. It knows what may start and when; whoever owns the clock drives it:
///
///   begin(0); then always the earlier of advance(next_time()) and the network's own next flow_done.
///
/// Network::start is called from begin and advance only, never from flow_done, so a network may call flow_done from
/// inside its own update. The same Program and the same answers of the network give the same times, bit for bit.
class Core {
 public:
  /// `routes` come from routes_of(), `memory` from memory_routes() or is empty; `start` and `end` have one place for
  /// each instruction. Without `conditions` the cluster never changes. `word_routes` has the index of the route back
  /// for each route of the program, over which the network carries the words of handshakes; -1 or empty: they take no
  /// more than the latency. All arguments must outlive this.
  Core(const Program& program, std::span<const Route> routes, Network& network, std::span<double> start,
       std::span<double> end, const Conditions* conditions = nullptr, std::span<const std::int32_t> memory = {},
       std::span<const std::int32_t> word_routes = {});

  void begin(double now);
  double next_time() const { return heap_.empty() ? kInfinity : heap_.front().time; }
  /// Handles every event at or before `now`.
  void advance(double now);
  void flow_done(int flow, double now);

  bool finished() const { return finished_ == program_.size(); }
  /// Throws Infeasible when an instruction has not ended: "down" if a change of the cluster blocks it without end, else
  /// "deadlock".
  void require_finished() const;
  void require_finished(const Cluster& cluster) const;

 private:
  enum class Shape : std::uint8_t {
    Alone,
    Pair,
    Handshake,  ///< A send that waits for the word of its receive, too.
    Confirmed,  ///< A Handshake whose data has come: it ends with the word of that.
    ReadyWord,  ///< The receive of a Handshake: its event is its word's arrival.
    EagerSend,
    EagerReceive,
    Phased,
    Follower
  };

  /// What runs as one: an instruction, a rendezvous transfer or a collective, at the number of its first instruction.
  struct Node {
    double seconds = 0;                 ///< Duration of the computation, or latency of the message.
    std::uint32_t first_successor = 0;  ///< Its successors end where the next node's begin.
    std::int32_t left = 0;              ///< Waits not yet over; during a phase: flows that have not arrived.
    std::int32_t leader = 0;
    std::int32_t link = -1;     ///< Payload of its first instruction.
    std::int32_t partner = -1;  ///< Eager send: its receive. Eager receive: its send. Collective: its current phase.
    Shape shape = Shape::Alone;
    bool flows = false;  ///< After `seconds`, bytes go over the network.
  };
  /// The moment when a share of an op is done, which buckets of gradients wait for. It is a node after all
  /// instructions.
  struct Milestone {
    std::int32_t op;
    double share;
    auto operator<=>(const Milestone&) const = default;
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
  void find_milestones();
  std::span<const Milestone> milestones_of(std::int32_t op) const;
  std::int32_t awaited_node(InstructionId waiting, InstructionId on) const;
  void push_milestones(std::int32_t op, double start, double end);
  void link();
  void push(std::int32_t node, double time);
  void start_node(std::int32_t id);
  void start_in_conditions(std::int32_t id);
  void start_traffic(std::int32_t id);
  double slow_start(const Node& node) const { return slow_starts_.empty() ? 0 : slow_starts_[node.link]; }
  double ready_to_flow(const Node& node, std::span<const Route> ways, double latencies, double more = 0) const;
  std::span<const Route> ways_of(const CollectivePhase&) const;
  void next_phase(std::int32_t id);
  bool words_flow(const Node& node) const;
  void start_bytes(std::int32_t id);
  void end_step(std::int32_t id);
  void finish(std::int32_t id);
  void confirm(std::int32_t id);
  void release(std::int32_t id);
  std::int32_t members(const Node& node) const;

  const Program& program_;
  std::span<const Route> routes_;
  Network& network_;
  std::span<double> start_, end_;
  const Conditions* conditions_;  ///< Null when the cluster never changes.
  std::span<const std::int32_t> memory_, word_routes_;
  std::vector<double> slow_starts_;       ///< Seconds of each transfer; empty where there are none.
  std::vector<double> seconds_;           ///< Latency of each phase while the cluster is unchanged.
  std::vector<Milestone> milestones_;     ///< By op, then by share.
  std::vector<Node> nodes_;               ///< Instructions, then milestones, and one extra for first_successor.
  std::vector<std::int32_t> successors_;  ///< Nodes that wait, in the order of their numbers.
  std::vector<Event> heap_;               ///< Ends of computations and latencies; the soonest in front.
  std::uint32_t sequence_ = 0;
  std::size_t finished_ = 0;
  double now_ = 0;
};

/// The time of a start or end that has not happened.
inline constexpr double kUnset = -1;

/// Throws Infeasible "deadlock" when some instruction has no end: how many, the first few of them, and what each waits
/// for.
void require_finished(const Program& program, std::span<const double> start, std::span<const double> end);

}  // namespace stagecraft::des
