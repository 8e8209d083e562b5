#include "backends/simgrid/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <vector>

#include "backends/des/core.hpp"
#include "backends/simgrid/compat.hpp"
#include "backends/simgrid/layout.hpp"
#include "backends/simgrid/platform.hpp"
#include "sim/core/diagnostic.hpp"

// SimGrid carries bytes and nothing else: computation and latencies are in the heap of des::Core, and one timer of
// SimGrid's kernel stands at the heap's next event. A transfer exists in SimGrid only while its bytes flow, because the
// time for each completion grows with what is alive (linearly before version 3.34).

namespace stagecraft::sg {
namespace {

/// The five options make links share their bandwidth evenly (max-min) and say nothing of latency, which we add.
/// Without them: TCP's slow start and window, shares by round-trip time, and events within 1 ns fall together.
s4u::Engine& make_engine() {
  static std::array<std::string, 8> words{"stagecraft",
                                          "--cfg=network/model:CM02",
                                          "--cfg=network/crosstraffic:0",
                                          "--cfg=network/latency-factor:0",
                                          "--cfg=network/TCP-gamma:1e30",
                                          "--cfg=surf/precision:1e-12",
                                          "--cfg=debug/verbose-exit:no",
                                          "--log=root.thres:error"};
  std::array<char*, 9> argv{};
  std::transform(words.begin(), words.end(), argv.begin(), [](std::string& word) { return word.data(); });
  int argc = static_cast<int>(words.size());
  // Never destroyed: the process ends with the simulation, and large platforms take long to take apart.
  static s4u::Engine* const engine = new s4u::Engine(&argc, argv.data());
  return *engine;
}

class Carrier final : public des::Network {
 public:
  Carrier(const Program& program, std::span<const Route> routes, std::vector<HostPair> ends, std::span<double> start,
          std::span<double> end)
      : program_(program), ends_(std::move(ends)), core_(program, routes, *this, start, end) {}

  void run(s4u::Engine& engine) {
    on_transfer_end([this](const s4u::Activity& activity) { arrived(activity); });
    // An activity may not be freed inside its own callback.
    s4u::Engine::on_time_advance_cb([this](double) { release(); });
    core_.begin(0);
    core_.advance(0);
    arm();
    engine.run();
    release();
    core_.require_finished();
  }

  void start(int flow, std::int32_t route, std::uint64_t bytes) override {
    const HostPair& ends = ends_[static_cast<std::size_t>(route)];
    const s4u::CommPtr comm = s4u::Comm::sendto_init(ends.from, ends.to)->set_payload_size(bytes);
    comm->set_data(reinterpret_cast<void*>(static_cast<std::intptr_t>(flow) + 1));
    comm->add_ref();
    start_activity(comm);
  }

 private:
  void arrived(const s4u::Activity& activity) {
    const int flow = static_cast<int>(reinterpret_cast<std::intptr_t>(activity.get_data<void>()) - 1);
    if (activity.get_state() != s4u::Activity::State::FINISHED)
      throw BackendError(fmt::format("SimGrid lost transfer {}", to_text(program_, InstructionId{flow})));
    done_.push_back(const_cast<s4u::Activity*>(&activity));
    core_.flow_done(flow, s4u::Engine::get_clock());
    arm();
  }

  void arm() {
    if (core_.next_time() >= armed_for_) return;
    if (timer_ != nullptr) timer_->remove();
    armed_for_ = std::max(core_.next_time(), s4u::Engine::get_clock());
    timer_ = Timer::set(armed_for_, [this] { fire(); });
  }

  void fire() {
    timer_ = nullptr;
    armed_for_ = des::kNever;
    core_.advance(s4u::Engine::get_clock());
    arm();
  }

  void release() {
    for (s4u::Activity* activity : done_) activity->unref();
    done_.clear();
  }

  const Program& program_;
  std::vector<HostPair> ends_;
  des::Core core_;
  Timer* timer_ = nullptr;
  double armed_for_ = des::kNever;
  std::vector<s4u::Activity*> done_;
};

}  // namespace

void simulate(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
              std::span<double> end) {
  s4u::Engine& engine = make_engine();
  std::signal(SIGINT, SIG_DFL);  // SimGrid's handler would list its actors and exit
  std::vector<HostPair> ends = build_platform(engine, lay_out(program, cluster, routes), program, cluster, routes);
  Carrier carrier(program, routes, std::move(ends), start, end);
  carrier.run(engine);
}

std::string library_version() {
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  return patch == 0 ? fmt::format("{}.{}", major, minor) : fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace stagecraft::sg
