// The catalog entry `fluid`: simulates a Program by des::Core, with transfers that share links by max-min fairness;
// queue_network.cpp has links with one queue.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/backend.hpp"
#include "backends/des/core.hpp"
#include "backends/des/routes.hpp"
#include "backends/fluid/deadline.hpp"
#include "backends/fluid/fair_share.hpp"
#include "backends/fluid/finish_queue.hpp"
#include "backends/fluid/simulate.hpp"
#include "sim/core/host.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"

namespace stagecraft::fluid {
namespace {

class FluidNetwork final : public des::Network {
 public:
  FluidNetwork(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
               std::span<double> end)
      : cluster_(cluster),
        routes_(routes),
        paths_(paths_of(cluster, routes)),
        shares_(paths_),
        conditions_(cluster),
        links_(conditions_),
        memory_(des::memory_routes(program, cluster)),
        core_(program, routes, *this, start, end, &conditions_, memory_) {
    for (const Link& link : cluster.links) bandwidths_.push_back(link.bandwidth.value);
  }

  void run(Deadline deadline) {
    core_.begin(0);
    StopCounter stops;
    for (int idle = 0; idle < kMaxIdleLinkChanges; deadline.check()) {
      stops.pass();
      update_rates();  // once for all that happens at one time
      const double done = std::min(core_.next_time(), ends_.next_time());
      now_ = shares_.alive() > 0 ? std::min(done, links_.next_time()) : done;
      if (now_ == kInfinity) break;
      idle = done == kInfinity ? idle + 1 : 0;
      // What ends as a link goes down has ended, whatever rounding says.
      const double ending = now_ < links_.next_time() ? now_ : now_ * (1 + 1e-12);
      while (ends_.next_time() <= ending) arrived(ends_.pop());
      follow_links();
      core_.advance(now_);
    }
    core_.require_finished(cluster_);
  }

  void start(int sender, std::int32_t route, std::uint64_t bytes, double max_rate) override {
    const std::size_t flow = shares_.add(route, max_rate);
    if (flow >= loads_.size()) loads_.resize(flow + 1);
    loads_[flow] = {static_cast<double>(bytes), 0, now_, sender};
  }

 private:
  struct Load {
    double left = 0;  ///< Bytes, as of `since`.
    double rate = 0;
    double since = 0;
    int sender = 0;
  };

  void arrived(int flow) {
    shares_.remove(flow);
    core_.flow_done(loads_[flow].sender, now_);
  }

  void follow_links() {
    bool changed = false;
    links_.advance(now_, [&](LinkId link, double rate) {
      const LinkId l = link;
      bandwidths_[l] = rate * cluster_.links[l].bandwidth.value;
      changed = true;
    });
    if (!changed) return;
    set_bandwidths(paths_, bandwidths_, routes_);
    shares_.change(paths_);
  }

  void update_rates() {
    for (const int flow : shares_.update_rates()) {
      Load& load = loads_[flow];
      load.left = std::max(0.0, load.left - load.rate * (now_ - load.since));
      load.since = now_;
      load.rate = shares_.rate(flow);
      ends_.set(flow, load.rate > 0 ? now_ + load.left / load.rate : kInfinity);
    }
  }

  static constexpr int kMaxIdleLinkChanges = 1'000'000;  ///< Changes of links while nothing moves.

  const Cluster& cluster_;
  std::span<const Route> routes_;
  Paths paths_;
  FairShare shares_;
  Conditions conditions_;
  des::LinkRates links_;
  IdVector<LinkId, double> bandwidths_;  ///< The current ones.
  FinishQueue ends_;
  std::vector<Load> loads_;  ///< Indexed by flow.
  double now_ = 0;
  std::vector<std::int32_t> memory_;
  des::Core core_;
};

}  // namespace

void simulate(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
              std::span<double> end, Seconds timeout) {
  FluidNetwork(program, cluster, routes, start, end).run(Deadline(timeout));
}

}  // namespace stagecraft::fluid

namespace stagecraft::backends {
namespace {

Timeline run(const Program& program, const Cluster& cluster, const RunOptions& options) {
  const std::vector<Route> routes = des::routes_of(program, cluster);
  Timeline timeline;
  reserve_column(timeline.start, program.size());
  reserve_column(timeline.end, program.size());
  timeline.start.resize(program.size());
  timeline.end.resize(program.size());
  const auto simulate = cluster.has_one_queue() ? fluid::simulate_queues : fluid::simulate;
  simulate(program, cluster, routes, timeline.start, timeline.end, options.timeout);
  timeline.clock = Clock::Simulated;
  timeline.provenance.backend = "fluid";
  timeline.provenance.seed = options.seed;
  return timeline;
}

}  // namespace

extern const BackendDef fluid;
const BackendDef fluid{
    .name = "fluid",
    .summary = "contention: every link shared among the transfers that cross it (max-min), for thousands of devices",
    .source = "Bertsekas and Gallager, Data Networks, 1992, 6.5.2",
    .clock = Clock::Simulated,
    .version = [] { return std::string(); },
    .why_not = [] { return std::string(); },
    .run = run,
};

}  // namespace stagecraft::backends
