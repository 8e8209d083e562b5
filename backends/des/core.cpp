// The event loop that `fluid` and `simgrid` share: starts what is ready, and asks a Network only to carry the bytes.

#include "backends/des/core.hpp"

#include <algorithm>
#include <cmath>

#include "backends/des/routes.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/program/connections.hpp"
#include "sim/program/held_up.hpp"

// Discrete events with dependency counters: O(instructions + waits + events * log(live)), where live is what runs at
// one time. Waits are turned round once into one array of successors, so that the end of something touches only what it
// frees; nothing is allocated after the constructor.

namespace stagecraft::des {
Core::Core(const Program& program, std::span<const Route> routes, Network& network, std::span<double> start,
           std::span<double> end, const Conditions* conditions, std::span<const std::int32_t> memory,
           std::span<const std::int32_t> word_routes)
    : program_(program),
      routes_(routes),
      network_(network),
      start_(start),
      end_(end),
      conditions_(conditions != nullptr && conditions->as_rated() ? nullptr : conditions),
      memory_(program.traffic.empty() ? std::span<const std::int32_t>{} : memory),
      word_routes_(word_routes) {
  STAGECRAFT_CHECK(start.size() == program.size() && end.size() == program.size());
  STAGECRAFT_CHECK(routes.size() >= program.routes.size());
  std::fill(start_.begin(), start_.end(), kUnset);
  std::fill(end_.begin(), end_.end(), kUnset);
  slow_starts_ = slow_start_delays(program, routes.first(program.routes.size()));
  find_milestones();
  nodes_.resize(program.size() + milestones_.size() + 1);
  for (std::size_t i = 0; i < program.size(); ++i) describe(i);
  describe_phases();
  link();
  heap_.reserve(program.size());  // address space only: pages that are never touched cost nothing
}

void Core::describe(std::size_t i) {
  const Instruction& instruction = program_.at(InstructionId{i});
  Node& node = nodes_[i];
  node.leader = static_cast<std::int32_t>(i);
  node.link = instruction.payload;
  if (instruction.is_compute()) {
    describe_op(i);
  } else if (instruction.kind == InstructionKind::Collective) {
    describe_member(i);
  } else {
    describe_end(i, program_.transfer(instruction));
  }
}

void Core::describe_op(std::size_t i) {
  const Instruction& op = program_.at(InstructionId{i});
  STAGECRAFT_CHECK(op.duration.value >= 0 && std::isfinite(op.duration.value));
  nodes_[i].seconds = op.duration.value;
  nodes_[i].flows = !memory_.empty() && memory_[op.device.value] >= 0 && op.duration.value > 0 &&
                    copied_bytes(program_.traffic[InstructionId{i}]) > 0;
}

void Core::describe_end(std::size_t i, const Transfer& transfer) {
  Node& node = nodes_[i];
  const bool sends = transfer.send.value == node.leader;
  node.partner = (sends ? transfer.receive : transfer.send).value;
  node.shape = sends ? Shape::EagerSend : Shape::EagerReceive;
  if (program_.rendezvous) {
    STAGECRAFT_CHECK(transfer.receive.value == transfer.send.value + 1);
    node.leader = transfer.send.value;
    node.shape = sends ? Shape::Pair : Shape::Follower;
  }
  const TransferShape& shape = program_.shape(transfer);
  const Route& route = routes_[shape.route];
  if (program_.handshakes) {
    node.leader = static_cast<std::int32_t>(i);
    node.shape = sends ? Shape::Handshake : Shape::ReadyWord;
    node.left = sends ? 1 : 0;
    node.seconds = route.latency.value;
    node.flows = words_flow(node);
  }
  if (!sends) return;
  node.seconds = route.latency.value + slow_start(node);
  node.flows = shape.bytes > 0 && !route.hops.empty();
}

void Core::describe_member(std::size_t i) {
  const CollectiveCall& collective = program_.collective(program_.at(InstructionId{i}));
  Node& node = nodes_[i];
  node.leader = collective.first.value;
  node.seconds = program_.at(collective.first).duration.value;  // Its whole cost where it has no phases.
  node.shape = node.leader == static_cast<std::int32_t>(i) ? Shape::Phased : Shape::Follower;
}

// Each phase pays the latency of its slowest route as often as it has steps; all the bytes of all steps then flow over
// every route as one fluid (for a ring equal to the single steps within 0.2 % under contention, and exactly without).
void Core::describe_phases() {
  seconds_.reserve(program_.phases.size());
  for (const CollectivePhase& phase : program_.phases) {
    double latency = 0;
    for (const Route& route : ways_of(phase)) latency = std::max(latency, route.latency.value);
    seconds_.push_back(phase.latencies * latency);
  }
}

std::span<const Route> Core::ways_of(const CollectivePhase& phase) const {
  return routes_.subspan(phase.first_route, phase.routes);
}

/// The next phase of a collective, or its end.
void Core::next_phase(std::int32_t id) {
  Node& node = nodes_[id];
  const CollectiveCall& collective = program_.collectives[node.link];
  const CollectiveShape& shape = program_.shape(collective);
  if (++node.partner == shape.first_phase + shape.phases) return finish(id);
  const CollectivePhase& phase = program_.phases[node.partner];
  const std::span<const Route> ways = ways_of(phase);
  const bool remote = std::any_of(ways.begin(), ways.end(), [](const Route& way) { return !way.hops.empty(); });
  node.flows = remote && phase.bytes > 0;
  const double ready = conditions_ == nullptr ? now_ + collective.repeats() * seconds_[node.partner]
                                              : ready_to_flow(node, ways, collective.repeats() * phase.latencies);
  if (ready < kForEver) push(id, ready);
}

void Core::find_milestones() {
  for (const CollectiveCall& collective : program_.collectives) {
    if (collective.after >= 1) continue;
    for (int m = 0; m < collective.members; ++m)
      for (const InstructionId wait : program_.waits_for(collective.member(m)))
        if (program_.at(wait).is_compute()) milestones_.push_back({wait.value, collective.after});
  }
  std::sort(milestones_.begin(), milestones_.end());
  milestones_.erase(std::unique(milestones_.begin(), milestones_.end()), milestones_.end());
}

std::span<const Core::Milestone> Core::milestones_of(std::int32_t op) const {
  const auto first = std::lower_bound(milestones_.begin(), milestones_.end(), op,
                                      [](const Milestone& m, std::int32_t id) { return m.op < id; });
  auto end = first;
  while (end != milestones_.end() && end->op == op) ++end;
  return {milestones_.data() + (first - milestones_.begin()), static_cast<std::size_t>(end - first)};
}

std::int32_t Core::awaited_node(InstructionId waiting, InstructionId on) const {
  const Instruction& i = program_.at(waiting);
  const bool in_part = i.kind == InstructionKind::Collective && program_.collective(i).after < 1;
  if (!in_part || !program_.at(on).is_compute()) return nodes_[on.value].leader;
  const Milestone wanted{on.value, program_.collective(i).after};
  const auto match = std::lower_bound(milestones_.begin(), milestones_.end(), wanted);
  return static_cast<std::int32_t>(static_cast<std::ptrdiff_t>(program_.size()) + (match - milestones_.begin()));
}

void Core::push_milestones(std::int32_t op, double start, double end) {
  if (milestones_.empty()) return;
  for (const Milestone& m : milestones_of(op)) {
    const auto node = static_cast<std::ptrdiff_t>(program_.size()) + (&m - milestones_.data());
    push(static_cast<std::int32_t>(node), start + m.share * (end - start));
  }
}

void Core::link() {
  for (const InstructionId i : program_.instructions.ids()) {
    for (const InstructionId wait : program_.waits_for(i)) {
      ++nodes_[nodes_[i.value].leader].left;
      ++nodes_[awaited_node(i, wait)].first_successor;
    }
  }
  std::uint32_t total = 0;
  for (Node& node : nodes_) node.first_successor = total += node.first_successor;
  successors_.resize(total);
  for (std::size_t i = program_.size(); i-- > 0;) {  // backwards, so that each list comes out in the order of numbers
    for (const InstructionId wait : program_.waits_for(InstructionId{i})) {
      const std::int32_t awaited = awaited_node(InstructionId{i}, wait);
      successors_[--nodes_[awaited].first_successor] = nodes_[i].leader;
    }
  }
}

std::int32_t Core::members(const Node& node) const {
  if (node.shape == Shape::Pair || node.shape == Shape::Handshake) return 2;
  if (node.shape != Shape::Phased) return 1;
  return program_.collectives[node.link].members;
}

void Core::push(std::int32_t node, double time) {
  heap_.push_back({time, sequence_++, node});
  std::push_heap(heap_.begin(), heap_.end(), Later{});
}

/// `latencies` times the latency of the slowest route and `more` seconds from now; without bytes to carry, not before
/// the links are up.
double Core::ready_to_flow(const Node& node, std::span<const Route> ways, double latencies, double more) const {
  double latency = 0;
  for (const Route& way : ways) latency = std::max(latency, conditions_->latency(way, now_));
  const double paid = now_ + (latencies * latency + more);
  double ready = paid;
  if (!node.flows)
    for (const Route& way : ways) ready = std::max(ready, conditions_->carry(way, paid, 0));
  return ready;
}

/// When it ends is known at its start, except for what the network carries. What never ends gets no event.
void Core::start_in_conditions(std::int32_t id) {
  const Node& node = nodes_[id];
  const Instruction& first = program_.at(InstructionId{id});
  if (!first.is_compute()) {
    const std::span<const Route> way = routes_.subspan(program_.shape(program_.transfers[node.link]).route, 1);
    const double ready = ready_to_flow(node, way, 1, slow_start(node));
    std::fill_n(start_.begin() + id, members(node), now_);
    if (ready < kForEver) push(id, ready);
    return;
  }
  const Span span = conditions_->compute(first.device, id, now_, node.seconds, program_.share_in_collectives(first));
  if (span.start == kForEver) return;
  start_[id] = span.start;
  if (node.flows) return push(id, span.start);
  if (span.end == kForEver) return;
  push_milestones(id, span.start, span.end);
  push(id, span.end);
}

void Core::start_node(std::int32_t id) {
  Node& node = nodes_[id];
  if (node.shape == Shape::Phased) {
    std::fill_n(start_.begin() + id, members(node), now_);
    const CollectiveShape& shape = program_.shape(program_.collectives[node.link]);
    node.partner = shape.first_phase - 1;
    return shape.phases == 0 ? push(id, now_ + node.seconds) : next_phase(id);
  }
  if (node.shape == Shape::ReadyWord) return push(id, now_ + node.seconds);
  if (conditions_ != nullptr && node.shape != Shape::EagerReceive) return start_in_conditions(id);
  std::fill_n(start_.begin() + id, members(node), now_);
  const bool op = node.shape == Shape::Alone;
  if (op && !node.flows) push_milestones(id, now_, now_ + node.seconds);
  if (node.shape != Shape::EagerReceive)
    push(id, op && node.flows ? now_ : now_ + node.seconds);
  else if (end_[node.partner] >= 0)
    push(id, now_);  // the data is there already
}

/// An op on shared memory: its traffic spread evenly over the time that it takes alone, so that it goes on at that pace
/// unless others leave it less. With traffic of M bytes that is min(M / time, its share of the memory) bytes a second.
void Core::start_traffic(std::int32_t id) {
  const std::size_t i = id;
  const Instruction& op = program_.at(InstructionId{i});
  double seconds = nodes_[i].seconds;
  if (conditions_ != nullptr) {
    const Span alone = conditions_->compute(op.device, id, now_, seconds, program_.share_in_collectives(op));
    seconds = alone.end - alone.start;
  }
  const std::uint64_t bytes = copied_bytes(program_.traffic[InstructionId{i}]);
  network_.start(id, memory_[op.device.value], bytes, static_cast<double>(bytes) / seconds);
}

/// Whether the network carries the words about a transfer.
bool Core::words_flow(const Node& node) const {
  return !word_routes_.empty() && word_routes_[program_.shape(program_.transfers[node.link]).route] >= 0;
}

void Core::start_bytes(std::int32_t id) {
  Node& node = nodes_[id];
  if (node.shape == Shape::Alone) return start_traffic(id);
  if (node.shape != Shape::Phased) {
    const TransferShape& shape = program_.shape(program_.transfers[node.link]);
    if (node.shape == Shape::ReadyWord || node.shape == Shape::Confirmed)
      return network_.start(id, word_routes_[shape.route], 0, kInfinity);
    return network_.start(id, shape.route, shape.bytes, kInfinity);
  }
  const CollectivePhase& phase = program_.phases[node.partner];
  const std::uint64_t bytes = program_.collectives[node.link].bytes(phase);
  for (std::int32_t k = 0; k < phase.routes; ++k) {
    if (routes_[phase.first_route + k].hops.empty()) continue;
    ++node.left;
    network_.start(id, phase.first_route + k, bytes, kInfinity);
  }
}

void Core::finish(std::int32_t id) {
  const std::size_t i = id;
  const Node& node = nodes_[i];
  const std::int32_t count = members(node);
  std::fill_n(end_.begin() + id, count, now_);
  finished_ += count;
  if (node.shape == Shape::EagerSend && nodes_[node.partner].left == 0) finish(node.partner);
  // How far an op on shared memory has come is known at its end only.
  if (node.shape == Shape::Alone && node.flows) push_milestones(id, now_, now_);
  release(id);
}

/// Starts what waited for nothing but this node.
void Core::release(std::int32_t id) {
  const std::size_t i = id;
  const std::uint32_t last = nodes_[i + 1].first_successor;
  for (std::uint32_t k = nodes_[i].first_successor; k < last; ++k)
    if (--nodes_[successors_[k]].left == 0) start_node(successors_[k]);
}

/// The data of a handshake is there: its receive ends, and its send when the word of that has come back.
void Core::confirm(std::int32_t id) {
  Node& node = nodes_[id];
  finish(node.partner);
  node.shape = Shape::Confirmed;
  node.flows = words_flow(node);
  push(id, now_ + nodes_[node.partner].seconds);
}

void Core::end_step(std::int32_t id) {
  switch (nodes_[id].shape) {
    case Shape::Phased:
      return next_phase(id);
    case Shape::Handshake:
      return confirm(id);
    case Shape::ReadyWord:
      if (const std::int32_t send = nodes_[id].partner; --nodes_[send].left == 0) start_node(send);
      return;
    default:
      return finish(id);
  }
}

void Core::begin(double now) {
  now_ = now;
  for (std::size_t i = 0; i < program_.size(); ++i)
    if (nodes_[i].left == 0 && nodes_[i].shape != Shape::Follower) start_node(static_cast<std::int32_t>(i));
}

void Core::advance(double now) {
  while (!heap_.empty() && heap_.front().time <= now) {
    const Event event = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    heap_.pop_back();
    now_ = std::max(now_, event.time);  // a flow may have ended an ulp later than an event that is handled after it
    if (static_cast<std::size_t>(event.node) >= program_.size())
      release(event.node);
    else if (nodes_[event.node].flows)
      start_bytes(event.node);
    else
      end_step(event.node);
  }
}

void Core::flow_done(int flow, double now) {
  now_ = std::max(now_, now);
  Node& node = nodes_[nodes_[flow].leader];
  if (node.shape != Shape::Phased || --node.left == 0) end_step(node.leader);
}

void Core::require_finished(const Cluster& cluster) const {
  if (!finished() && conditions_ != nullptr) throw_if_held_up(program_, cluster, *conditions_, end_);
  require_finished();
}

void Core::require_finished() const {
  if (!finished()) des::require_finished(program_, start_, end_);
}

}  // namespace stagecraft::des
