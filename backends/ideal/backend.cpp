#include "backends/backend.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/reserve.hpp"

namespace stagecraft::backends {
namespace {

struct RouteCost {
  double latency = 0, seconds_per_byte = 0;
};

std::vector<RouteCost> route_costs(const Program& program, const Cluster& cluster) {
  const Router router(cluster);
  std::vector<RouteCost> costs;
  costs.reserve(program.routes.size());
  for (const RouteEnds& ends : program.routes) {
    const Route route = router.require(ends.from, ends.to);
    costs.push_back({route.latency.value, route.hops.empty() ? 0.0 : 1.0 / route.bandwidth.value});
  }
  return costs;
}

/// The longest path of a Program in one pass: everything an instruction waits for has a smaller number.
class LongestPath {
 public:
  LongestPath(const Program& program, const Cluster& cluster) : p_(program), costs_(route_costs(program, cluster)) {
    reserve_column(timeline_.start, p_.size());
    reserve_column(timeline_.end, p_.size());
    timeline_.start.resize(p_.size());
    timeline_.end.resize(p_.size());
  }

  Timeline run() {
    for (std::size_t i = 0; i < p_.size();) i += step(i);
    return std::move(timeline_);
  }

 private:
  double ready(std::size_t i) const {
    double time = 0;
    for (std::uint32_t w = p_.first_wait[i]; w < p_.first_wait[i + 1]; ++w)
      time = std::max(time, timeline_.end[static_cast<std::size_t>(p_.waits[w])]);
    return time;
  }
  void set(std::size_t i, double start, double end) {
    timeline_.start[i] = start;
    timeline_.end[i] = end;
  }

  /// Instructions that were given their times.
  std::size_t step(std::size_t i) {
    const Instruction& instruction = p_.instructions[i];
    const double start = ready(i);
    switch (instruction.kind) {
      case InstructionKind::Send:
        return send(i, start);
      case InstructionKind::Receive:
        set(i, start,
            std::max(start, timeline_.end[static_cast<std::size_t>(
                                p_.transfers[static_cast<std::size_t>(instruction.link)].send)]));
        return 1;
      case InstructionKind::AllReduce:
        return all_reduce(i);
      default:
        set(i, start, start + instruction.duration.value);
        return 1;
    }
  }

  std::size_t send(std::size_t i, double start) {
    const Transfer& transfer = p_.transfers[static_cast<std::size_t>(p_.instructions[i].link)];
    const RouteCost& cost = costs_[static_cast<std::size_t>(transfer.route)];
    const double length = cost.latency + static_cast<double>(transfer.bytes) * cost.seconds_per_byte;
    if (p_.rendezvous) {
      start = std::max(start, ready(i + 1));
      set(i + 1, start, start + length);
    }
    set(i, start, start + length);
    return p_.rendezvous ? 2 : 1;
  }

  /// Ring: 2(n-1) steps of a latency, and 2(n-1)/n of the bytes over every edge at once.
  std::size_t all_reduce(std::size_t i) {
    const Collective& c = p_.collectives[static_cast<std::size_t>(p_.instructions[i].link)];
    const auto n = static_cast<std::size_t>(c.members);
    const double steps = 2.0 * (c.members - 1), bytes = static_cast<double>(ring_bytes(c.bytes, c.members));
    double start = 0, latency = 0, transfer = 0;
    for (std::size_t m = 0; m < n; ++m) {
      const RouteCost& cost = costs_[static_cast<std::size_t>(c.first_route) + m];
      start = std::max(start, ready(i + m));
      latency = std::max(latency, steps * cost.latency);
      transfer = std::max(transfer, bytes * cost.seconds_per_byte);
    }
    for (std::size_t m = 0; m < n; ++m) set(i + m, start, start + latency + transfer);
    return n;
  }

  const Program& p_;
  std::vector<RouteCost> costs_;
  Timeline timeline_;
};

Timeline run(const Program& program, const Cluster& cluster, const RunOptions&) {
  return LongestPath(program, cluster).run();
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
