// Simulates a Program on a cluster of which some links have one queue: Queues carries messages and the words of
// handshakes.

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "backends/des/core.hpp"
#include "backends/des/routes.hpp"
#include "backends/fluid/deadline.hpp"
#include "backends/fluid/queues.hpp"
#include "backends/fluid/simulate.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"

namespace stagecraft::fluid {
namespace {

/// A minute of one core: a chunk and its acknowledgement take about 0.5 us for each link.
constexpr double kMostChunks = 1e8;

/// The routes of a program, then for each the route back, over no link where no device is at its end or none leads
/// back. Handshakes require one.
std::vector<Route> both_ways(const Program& program, const Cluster& cluster, std::span<const Route> routes) {
  std::vector<Route> both(routes.begin(), routes.begin() + std::ssize(program.routes));
  const Router router(cluster);
  for (const auto [from, to] : program.routes) {
    const bool is_between_devices = from.valid() && to.valid() && from != to;
    if (!is_between_devices)
      both.emplace_back();
    else
      both.push_back(program.handshakes ? router.require(to, from) : router.route(to, from).value_or(Route{}));
  }
  return both;
}

/// The index in both_ways() of the route back for each of its routes; -1: none.
std::vector<std::int32_t> routes_back(std::span<const Route> both) {
  std::vector<std::int32_t> back(both.size(), -1);
  const auto half = static_cast<std::int32_t>(both.size() / 2);
  for (std::int32_t r = 0; r < half; ++r)
    if (!both[half + r].hops.empty()) back[r] = half + r, back[half + r] = r;
  return back;
}

void require_few_chunks(const Program& program, std::span<const Route> routes) {
  double chunks = 0;
  const auto add = [&](std::int32_t route, std::uint64_t bytes) {
    chunks += std::ceil(static_cast<double>(bytes) / kChunkBytes) * static_cast<double>(routes[route].hops.size());
  };
  for (const Transfer& transfer : program.transfers) add(program.shape(transfer).route, program.bytes(transfer));
  for (const CollectiveCall& call : program.collectives)
    for (const CollectivePhase& phase : program.phases_of(call))
      for (std::int32_t r = 0; r < phase.routes; ++r) add(phase.first_route + r, call.bytes(phase));
  if (chunks > kMostChunks)
    throw Infeasible(
        "queues",
        fmt::format("links with `queue: fifo` move messages in chunks of {:.0f} bytes, and these are {:.2g} "
                    "chunks over links; {:.0g} are possible",
                    kChunkBytes, chunks, kMostChunks),
        "write fewer run.iterations or run.micro_batches, or leave `queue: fifo` out: messages share links "
        "fairly then; stagecraft validate --queue fifo takes --simulator simgrid");
}

void refuse_shared_memory(const Cluster& cluster) {
  for (const Device& d : cluster.devices)
    if (d.memory.valid())
      throw Infeasible("queues",
                       fmt::format("'{}' shares its memory with others, and a link has `queue: fifo`", d.name),
                       "leave `queue: fifo` out; stagecraft validate --queue fifo takes --simulator simgrid");
}

/// The rates of messages over links without contention are found once.
void refuse_changes_of_unshared(const Cluster& cluster) {
  for (const LinkId link : Conditions(cluster).changing_links())
    if (cluster.links[link].duplex == Duplex::Unshared)
      throw Infeasible("queues",
                       fmt::format("'{}' has `duplex: unshared` and changes, and another link has `queue: fifo`",
                                   cluster.links[link].name),
                       "leave `queue: fifo` or the change out: no simulation has both");
}

class QueueNetwork final : public des::Network {
 public:
  QueueNetwork(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
               std::span<double> end)
      : cluster_(cluster),
        routes_(both_ways(program, cluster, routes)),
        back_(routes_back(routes_)),
        queues_(cluster, routes_, back_),
        conditions_(cluster),
        links_(conditions_),
        core_(program, routes_, *this, start, end, &conditions_, {}, back_) {}

  void run(Deadline deadline) {
    core_.begin(0);
    StopCounter stops;
    for (int idle = 0; idle < kMostIdleLinkChanges; deadline.check()) {
      stops.pass();
      const double done = std::min(core_.next_time(), queues_.next_time());
      now_ = queues_.busy() ? std::min(done, links_.next_time()) : done;
      if (now_ == kInfinity) break;
      idle = done == kInfinity ? idle + 1 : 0;
      for (const int owner : queues_.advance(now_)) core_.flow_done(owner, now_);
      links_.advance(now_, [&](LinkId link, double rate) {
        queues_.set_bandwidth(link, rate * cluster_.links[link].bandwidth.value, now_);
      });
      core_.advance(now_);
    }
    core_.require_finished(cluster_);
  }

  void start(int sender, std::int32_t route, std::uint64_t bytes, double max_rate) override {
    queues_.add(sender, route, bytes, max_rate, now_);
  }

 private:
  static constexpr int kMostIdleLinkChanges = 1'000'000;  ///< Changes of links while nothing moves.

  const Cluster& cluster_;
  std::vector<Route> routes_;
  std::vector<std::int32_t> back_;
  Queues queues_;
  Conditions conditions_;
  des::LinkRates links_;
  double now_ = 0;
  des::Core core_;
};

}  // namespace

void simulate_queues(const Program& program, const Cluster& cluster, std::span<const Route> routes,
                     std::span<double> start, std::span<double> end, Seconds timeout) {
  refuse_shared_memory(cluster);
  refuse_changes_of_unshared(cluster);
  require_few_chunks(program, routes);
  QueueNetwork(program, cluster, routes, start, end).run(Deadline(timeout));
}

}  // namespace stagecraft::fluid
