// Simulates a Program with SimGrid as the network of des::Core; runs in the child process that sandbox.cpp starts.

#include <fmt/core.h>
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/des/core.hpp"
#include "backends/des/routes.hpp"
#include "backends/simgrid/engine/layout.hpp"
#include "backends/simgrid/engine/platform.hpp"
#include "backends/simgrid/engine/tasks.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

// SimGrid carries bytes and nothing else: computation and latencies are in the heap of des::Core, and one timer of
// SimGrid's kernel stands at the heap's next event. A transfer exists in SimGrid only while its bytes flow, because the
// time for each completion grows with what is alive (linearly before version 3.34).

namespace stagecraft::sg::engine {
namespace {

class Carrier final : public des::Network {
 public:
  Carrier(const Program& program, const Cluster& cluster, std::span<const Route> routes, Platform platform,
          std::span<double> start, std::span<double> end)
      : program_(program),
        cluster_(cluster),
        routes_(routes),
        platform_(std::move(platform)),
        conditions_(cluster),
        rates_(conditions_),
        rate_(cluster.links.size(), 1),
        memory_(des::memory_routes(program, cluster)),
        core_(program, routes, *this, start, end, &conditions_, memory_) {}

  void run(s4u::Engine& engine) {
    on_transfer_end([this](const s4u::Activity& activity) { arrived(activity); });
    // An activity may not be freed inside its own callback.
    s4u::Engine::on_time_advance_cb([this](double) { release(); });
    core_.begin(0);
    follow_links(0);
    core_.advance(0);
    arm();
    engine.run();
    release();
    core_.require_finished(cluster_);
  }

  void start(int flow, std::int32_t route, std::uint64_t bytes, double max_rate) override {
    const HostPair& ends = ends_for(flow, route, max_rate);
    const s4u::CommPtr comm = s4u::Comm::sendto_init(ends.from, ends.to)->set_payload_size(bytes);
    comm->set_data(reinterpret_cast<void*>(static_cast<std::intptr_t>(flow) + 1));
    comm->add_ref();
    if (!rates_.any()) return start_activity(comm);
    alive_[comm.get()] = route;
    // SimGrid never lets a transfer have more than the least bandwidth that it finds at its start.
    for_changed(route, [this](LinkId link) { set_bandwidth(link, 1); });
    start_activity(comm);
    for_changed(route, [this](LinkId link) { set_bandwidth(link, rate_[link]); });
  }

 private:
  /// A transfer that came through a link that is down.
  struct Trickled {
    int flow;
    std::int32_t route;
  };

  /// A device has one op at a time, so its own link can be as fast as that op goes alone.
  const HostPair& ends_for(int flow, std::int32_t route, double max_rate) {
    if (route < std::ssize(program_.routes)) return platform_.ends[route];
    const DeviceId device = program_.at(InstructionId{flow}).device;
    const Pace& pace = platform_.paces[device];
    pace.link->set_bandwidth(max_rate);
    return pace.ends;
  }

  void arrived(const s4u::Activity& activity) {
    const int flow = static_cast<int>(reinterpret_cast<std::intptr_t>(activity.get_data<void>()) - 1);
    if (activity.get_state() != s4u::Activity::State::FINISHED)
      throw BackendError(fmt::format("SimGrid lost transfer {}", to_text(program_, InstructionId{flow})));
    done_.push_back(const_cast<s4u::Activity*>(&activity));
    if (const auto alive = alive_.find(&activity); alive != alive_.end()) {
      const std::int32_t route = alive->second;
      alive_.erase(alive);
      if (is_down(route)) return trickled_.push_back({flow, route});
    }
    idle_ = 0;
    core_.flow_done(flow, s4u::Engine::get_clock());
    arm();
  }

  bool is_down(std::int32_t route) const {
    const auto& hops = routes_[route].hops;
    return std::any_of(hops.begin(), hops.end(), [&](const Hop& hop) { return rate_[hop.link] <= 0; });
  }

  void set_bandwidth(LinkId link, double rate) {
    const double bandwidth = rate * cluster_.links[link].bandwidth.value;
    for (s4u::Link* one : platform_.links[link]) one->set_bandwidth(std::max(bandwidth, kTrickle));
  }

  template <class Use>
  void for_changed(std::int32_t route, Use use) {
    for (const Hop& hop : routes_[route].hops)
      if (const LinkId link = hop.link; rate_[link] < 1) use(link);
  }

  void follow_links(double now) {
    bool changed = false;
    rates_.advance(now, [&](LinkId link, double rate) {
      rate_[link] = rate;
      set_bandwidth(link, rate);
      changed = true;
    });
    if (!changed) return;
    for (const Trickled& one : std::exchange(trickled_, {})) {
      if (is_down(one.route))
        trickled_.push_back(one);
      else
        core_.flow_done(one.flow, now);
    }
  }

  bool nothing_moves() const {
    return core_.next_time() == kInfinity &&
           std::all_of(alive_.begin(), alive_.end(), [this](const auto& flow) { return is_down(flow.second); });
  }

  double next_time() const {
    return alive_.empty() && trickled_.empty() ? core_.next_time() : std::min(core_.next_time(), rates_.next_time());
  }

  void arm() {
    if (next_time() >= armed_for_ || idle_ > kPatience) return;
    if (timer_ != nullptr) timer_->remove();
    armed_for_ = std::max(next_time(), s4u::Engine::get_clock());
    timer_ = Timer::set(armed_for_, [this] { fire(); });
  }

  void fire() {
    timer_ = nullptr;
    armed_for_ = kInfinity;
    const double now = s4u::Engine::get_clock();
    idle_ = nothing_moves() ? idle_ + 1 : 0;
    follow_links(now);
    core_.advance(now);
    arm();
  }

  void release() {
    for (s4u::Activity* activity : done_) activity->unref();
    done_.clear();
  }

  /// SimGrid refuses a bandwidth of zero, loses what is on a link that is off, and suspends a transfer only once
  /// (3.32). So a link that is down carries next to nothing, in bytes per second, and what comes through waits here.
  static constexpr double kTrickle = 1e-3;
  static constexpr int kPatience = 1'000'000;  ///< Changes of links while nothing moves.

  const Program& program_;
  const Cluster& cluster_;
  std::span<const Route> routes_;
  Platform platform_;
  Conditions conditions_;
  des::LinkRates rates_;
  IdVector<LinkId, double> rate_;  ///< The current ones.
  /// Routes of transfers that are not there yet, where links change. A collective has several of one number.
  std::map<const s4u::Activity*, std::int32_t> alive_;
  std::vector<Trickled> trickled_;
  int idle_ = 0;
  std::vector<std::int32_t> memory_;
  des::Core core_;
  Timer* timer_ = nullptr;
  double armed_for_ = kInfinity;
  std::vector<s4u::Activity*> done_;
};

}  // namespace

void simulate(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
              std::span<double> end) {
  const bool lv08 = is_lv08_asked();
  s4u::Engine& engine = make_engine(lv08);
  std::signal(SIGINT, SIG_DFL);  // SimGrid's handler would list its actors and exit
  Platform platform = build_platform(engine, build_layout(program, cluster, routes), program, cluster, routes);
  std::vector<Route> carried(routes.begin(), routes.end());
  if (lv08)  // Latencies are SimGrid's.
    for (Route& route : carried) route.latency = {};
  Carrier(program, cluster, carried, std::move(platform), start, end).run(engine);
}

std::string version() {
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  const std::string number =
      patch == 0 ? fmt::format("{}.{}", major, minor) : fmt::format("{}.{}.{}", major, minor, patch);
  return is_lv08_asked() ? number + " LV08" : number;
}

}  // namespace stagecraft::sg::engine
