// The catalog entry `ideal`: one pass over the instructions gives all times, because nothing shares links.

#include "backends/backend.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/cluster/conditions.hpp"
#include "sim/core/host.hpp"
#include "sim/program/connections.hpp"
#include "sim/program/held_up.hpp"

namespace stagecraft::backends {
namespace {

struct RouteCost {
  double latency = 0, seconds_per_byte = 0;
};

std::vector<Route> routes_of(const Program& program, const Cluster& cluster) {
  const Router router(cluster);
  std::vector<Route> routes;
  routes.reserve(program.routes.size());
  for (const RouteEnds& ends : program.routes) routes.push_back(router.require(ends.from, ends.to));
  return routes;
}

/// Durations on a cluster that never changes.
class Rated {
 public:
  Rated(const Program&, const Cluster&, const std::vector<Route>& routes) {
    costs_.reserve(routes.size());
    for (const Route& route : routes)  // A device reaches itself at infinite rate.
      costs_.push_back({route.latency.value, 1.0 / route.bandwidth.value});
  }

  Span compute(const Instruction& i, std::size_t, double ready) const { return {ready, ready + i.duration.value}; }
  double latency(std::int32_t route, double) const { return costs_[route].latency; }
  double word(std::int32_t route) const { return costs_[route].latency; }
  double message(std::int32_t route, double start, double bytes, double slow_start) const {
    const RouteCost& cost = costs_[route];
    return start + (cost.latency + slow_start + bytes * cost.seconds_per_byte);
  }
  double carry(std::int32_t route, double from, double bytes) const {
    return from + bytes * costs_[route].seconds_per_byte;
  }
  void require_all(std::span<const double>) const {}

 private:
  std::vector<RouteCost> costs_;
};

/// Durations on a cluster that changes over time.
class Changing {
 public:
  Changing(const Program& program, const Cluster& cluster, std::vector<Route> routes)
      : program_(program), cluster_(cluster), conditions_(cluster), routes_(std::move(routes)) {}

  Span compute(const Instruction& i, std::size_t number, double ready) const {
    return conditions_.compute(i.device, static_cast<std::int64_t>(number), ready, i.duration.value,
                               program_.share_in_collectives(i));
  }
  double word(std::int32_t route) const { return routes_[route].latency.value; }
  double latency(std::int32_t route, double at) const { return conditions_.latency(routes_[route], at); }
  double message(std::int32_t route, double start, double bytes, double slow_start) const {
    return carry(route, start + (latency(route, start) + slow_start), bytes);
  }
  double carry(std::int32_t route, double from, double bytes) const {
    return conditions_.carry(routes_[route], from, bytes);
  }
  void require_all(std::span<const double> end) const { throw_if_held_up(program_, cluster_, conditions_, end); }

 private:
  const Program& program_;
  const Cluster& cluster_;
  Conditions conditions_;
  std::vector<Route> routes_;
};

/// The longest path of a Program in one pass: everything an instruction waits for has a smaller number.
template <class Costs>
class LongestPath {
 public:
  LongestPath(const Program& program, const Cluster& cluster, std::vector<Route> routes)
      : p_(program), slow_starts_(slow_start_delays(program, routes)), costs_(program, cluster, std::move(routes)) {
    reserve_column(timeline_.start, p_.size());
    reserve_column(timeline_.end, p_.size());
    timeline_.start.resize(p_.size());
    timeline_.end.resize(p_.size());
  }

  Timeline run() {
    for (std::size_t i = 0; i < p_.size();) i += step(i);
    costs_.require_all(timeline_.end);
    return std::move(timeline_);
  }

 private:
  double ready(std::size_t i) const {
    double time = 0;
    for (std::uint32_t w = p_.first_wait[i]; w < p_.first_wait[i + 1]; ++w)
      time = std::max(time, timeline_.end[p_.waits[w]]);
    return time;
  }
  /// A bucket of gradients waits for a share of the backward that makes them.
  double ready(std::size_t i, double share) const {
    double time = 0;
    for (std::uint32_t w = p_.first_wait[i]; w < p_.first_wait[i + 1]; ++w) {
      const InstructionId before = p_.waits[w];
      const double start = timeline_.start[before], end = timeline_.end[before];
      const bool in_part = p_.at(before).is_compute() && end < kForEver;
      time = std::max(time, in_part ? start + share * (end - start) : end);
    }
    return time;
  }
  void set(std::size_t i, double start, double end) {
    timeline_.start[InstructionId{i}] = start;
    timeline_.end[InstructionId{i}] = end;
  }

  /// Instructions that were given their times.
  std::size_t step(std::size_t i) {
    const Instruction& instruction = p_.at(InstructionId{i});
    const double start = ready(i);
    switch (instruction.kind) {
      case InstructionKind::Send:
        return send(i, start);
      case InstructionKind::Receive:
        set(i, start, std::max(start, timeline_.end[p_.transfer(instruction).send]));
        return 1;
      case InstructionKind::Collective:
        return collective(i);
      default:
        const Span span = costs_.compute(instruction, i, start);
        set(i, span.start, span.end);
        return 1;
    }
  }

  std::size_t send(std::size_t i, double start) {
    const Instruction& send = p_.at(InstructionId{i});
    const TransferShape& shape = p_.shape(send);
    const double word = p_.handshakes ? costs_.word(shape.route) : 0;
    if (p_.rendezvous) start = std::max(start, ready(i + 1) + word);
    const double slow_start = slow_starts_.empty() ? 0 : slow_starts_[send.transfer()];
    const double end = costs_.message(shape.route, start, static_cast<double>(shape.bytes), slow_start);
    set(i, start, end + word);
    if (p_.rendezvous) set(i + 1, start, end);
    return p_.rendezvous ? 2 : 1;
  }

  /// Members start each phase together, when the one before it has ended on all of its routes.
  std::size_t collective(std::size_t i) {
    const CollectiveCall& c = p_.collective(p_.at(InstructionId{i}));
    double start = 0;
    for (int m = 0; m < c.members; ++m) start = std::max(start, c.after < 1 ? ready(i + m, c.after) : ready(i + m));
    double now = start + p_.at(InstructionId{i}).duration.value;
    for (const CollectivePhase& phase : p_.phases_of(c)) now = end_of(phase, c, now);
    for (int m = 0; m < c.members; ++m) set(i + m, start, now);
    return c.members;
  }

  double end_of(const CollectivePhase& phase, const CollectiveCall& c, double start) const {
    const double latencies = c.repeats() * phase.latencies, bytes = static_cast<double>(c.bytes(phase));
    const std::int32_t last = phase.first_route + phase.routes;
    double latency = 0, end = start;
    for (std::int32_t r = phase.first_route; r < last; ++r)
      latency = std::max(latency, latencies * costs_.latency(r, start));
    for (std::int32_t r = phase.first_route; r < last; ++r)
      end = std::max(end, costs_.carry(r, start + latency, bytes));
    return end;
  }

  const Program& p_;
  std::vector<double> slow_starts_;  ///< Seconds of each transfer; empty where there are none.
  Costs costs_;
  Timeline timeline_;
};

Timeline run(const Program& program, const Cluster& cluster, const RunOptions&) {
  std::vector<Route> routes = routes_of(program, cluster);
  if (cluster.changes.empty() && cluster.jitter.max_fraction <= 0)
    return LongestPath<Rated>(program, cluster, std::move(routes)).run();
  return LongestPath<Changing>(program, cluster, std::move(routes)).run();
}

}  // namespace

extern const BackendDef ideal{
    .name = "ideal",
    .summary = "No contention: the longest path through the program",
    .source = "critical path method, Kelley and Walker 1959",
    .clock = Clock::Simulated,
    .version = [] { return std::string{}; },
    .why_not = [] { return std::string{}; },
    .run = run,
};

}  // namespace stagecraft::backends
