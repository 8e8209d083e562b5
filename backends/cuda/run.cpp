// Runs a Program on the GPUs of this process: virtual devices, messages, warm-up, the run itself, and the Timeline that
// comes of it.

#include "backends/cuda/run.hpp"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "backends/cuda/completion_watch.hpp"
#include "backends/cuda/ranks/gpu_slots.hpp"
#include "backends/cuda/ranks/together.hpp"
#include "backends/cuda/repeat.hpp"
#include "backends/real/multi_process_run.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/program/offload.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kMostAhead = 64;  // Instructions in a queue; LaunchLimit limits their launches.

constexpr std::int64_t kMostCounted = 1 << 20;  // Updates: floats count them one by one, and each has 16 bytes at most.

/// GPUs of the devices of the program; -1: none here.
std::vector<int> gpus_of(const std::vector<int>& devices, const VirtualDevices& virtual_devices) {
  std::vector<int> gpus;
  for (const int d : devices) gpus.push_back(d < 0 ? -1 : virtual_devices.gpu(d));
  return gpus;
}

/// A kernel that copies uses the memory of the other GPU itself.
void require_reach(const Program& program, const std::vector<int>& devices, const VirtualDevices& virtual_devices) {
  for (const Transfer& t : program.transfers) {
    const int from = devices[program.at(t.send).device.value];
    const int to = devices[program.at(t.receive).device.value];
    if (from >= 0 && to >= 0 && !(virtual_devices.reaches(from, to) && virtual_devices.reaches(to, from)))
      throw BackendError(
          fmt::format("GPU {} cannot reach the memory of GPU {}, so no kernel can copy a message: "
                      "run.gpu.messages: copy",
                      virtual_devices.gpu(from), virtual_devices.gpu(to)));
  }
}

/// Null where nothing goes from GPU to GPU by NCCL. What groups exchange is known only when the session is.
std::unique_ptr<NcclCommunicators> ranks_of(const Program& program, const real::DevicePlacement& placement,
                                            const std::vector<int>& gpus, const GpuOptions& options) {
  const World world = placement.world();
  const ByNccl by_nccl{options.messages == GpuMessages::Nccl,
                       options.sums == GpuSums::Collective && !program.collectives.empty(), options.nccl_ctas};
  if (world.size == 1 && !by_nccl.messages && !by_nccl.sums) return nullptr;
  return std::make_unique<NcclCommunicators>(program, slots_of(placement, gpus), world.rank, by_nccl);
}

/// All processes come here at the same time. InputError where a GPU would have too many streams.
void connect(NcclCommunicators& ranks, const real::Session& session, const Queues& queues) {
  const auto alone = [](const std::string& text) { return std::vector<std::string>{text}; };
  ranks.connect(session.groups(), world().size > 1 ? GatherTexts(real::all_gather_texts) : alone);
  if (ranks.any()) require_queues(queues, ranks.gpus());
}

bool has_experts(const Workload& workload) {
  return std::any_of(workload.layers.begin(), workload.layers.end(), [](const WorkloadLayer& layer) {
    return std::any_of(layer.operations.begin(), layer.operations.end(),
                       [](const Operation& op) { return op.kind == OperationKind::Dispatch; });
  });
}

/// Why iterations of this run are not graphs; empty: they are.
std::string set_up_graphs(const Program& program, Enqueuer& enqueuer, RunState& state,
                          const Repeater::CommonBits& common_bits) {
  if (copies_stashes(program)) return "stashes are copied to host memory";
  std::string why_not = state.ranks ? state.ranks->why_no_graph() : "";
  if (!why_not.empty()) return why_not;
  if (program.iterations < 2) return "there is one iteration only";
  if (has_experts(*program.workload)) return "the host has to know how many rows each expert gets";
  std::vector<Iteration> iterations = iterations_of(program, program.workload->training.evaluate_every > 0, why_not);
  if (iterations.empty()) return why_not;
  state.repeater = std::make_unique<Repeater>(*state.runtime, enqueuer, std::move(iterations), common_bits);
  const std::int64_t updates = *std::max_element(program.updates.begin(), program.updates.end());
  state.runtime->count_steps(static_cast<int>(std::min(program.iterations * updates, kMostCounted)));
  return why_not;
}

Timeline outcome(const Program& program, RunState& state, const Options& options) {
  Timeline timeline;
  timeline.clock = Clock::Device;
  timeline.instruction_times = options.gpu.timing == GpuTiming::Events;
  state.events.reader->read_all();
  timeline.start = state.events.reader->start();
  timeline.end = state.events.reader->end();
  if (!timeline.instruction_times) spread_over_iterations(program, timeline.start, timeline.end);
  bool diverged = false;
  try {
    state.session->require_finite();
  } catch (const Infeasible&) {
    if (!options.one_thread) throw;
    diverged = true;
  }
  timeline.learnt = state.session->learnt(state.session->records());
  timeline.learnt->diverged = diverged;
  timeline.provenance.machine = state.runtime->devices().description();
  return timeline;
}

/// What the devices of this process hold, and who carries messages between them.
std::unique_ptr<RunState> held_for(const Program& program, const KernelMaker& maker, const Options& options,
                                   const real::DevicePlacement& placement, const ProcessShare& part) {
  auto state = std::make_unique<RunState>();
  state->runtime = std::make_unique<GpuRuntime>(part.devices, maker, real::width_of(*program.workload),
                                                options.fills_new_memory, part.gpus);
  const VirtualDevices& devices = state->runtime->devices();
  const std::vector<int> gpus = gpus_of(part.virtual_of, devices);
  if (options.gpu.messages == GpuMessages::Kernel) require_reach(program, part.virtual_of, devices);
  state->messages = make_messages(program, gpus, options.gpu, options.copy_kernel);
  state->ranks = ranks_of(program, placement, gpus, options.gpu);
  return state;
}

/// One run, with what waiting for it takes.
class Runner {
 public:
  Runner(const Program& program, const Options& options, const real::DevicePlacement& placement,
         const ProcessShare& part, RunState& state)
      : p_(program), options_(options), placement_(placement), part_(part), state_(state) {}

  Timeline run() {
    const bool timed = options_.gpu.timing == GpuTiming::Events;
    const auto keep_up = [this](int queue) { watch_->keep_up(queue, kMostAhead); };
    Enqueuer enqueuer(p_, *state_.runtime, part_.virtual_of, *state_.messages,
                      {timed, keep_up, timed ? std::vector<EndEvent>{} : end_events(p_)}, state_.ranks.get());
    const auto factory = [this](std::size_t, DeviceId d) {
      return queue_kernels(*state_.runtime, std::max(0, part_.virtual_of[d.value]));
    };
    state_.session = std::make_unique<real::Session>(
        p_, factory, [this](DeviceId d) { return here(d); }, true, real::Session::RemoteMaker{},
        [&](const std::vector<DeviceId>& devices) { return enqueuer.communicator(devices); },
        [this](std::size_t, DeviceId d) {
          return queue_kernels(*state_.runtime, std::max(0, part_.virtual_of[d.value]), /*on_host=*/true);
        });
    if (state_.ranks) connect(*state_.ranks, *state_.session, state_.runtime->queues());
    give_way_ = [&] { enqueuer.give_way(); };
    const auto common_bits = [this](std::uint64_t local) { return bits_of_all(local); };
    const std::string no_graph = options_.gpu.graph ? set_up_graphs(p_, enqueuer, state_, common_bits) : "";
    const Stage stage{
        p_, *state_.runtime, enqueuer, *state_.session, state_.events, [this](const std::function<void()>& enqueue) {
          play(enqueue);
        }};
    Enqueued result;
    Timeline timeline = perform([&] {
      result = state_.repeater ? play_by_graphs(stage, *state_.repeater, options_.warm_up)
                               : play_by_calls(stage, options_.warm_up);
    });
    if (!no_graph.empty()) result.no_graph = no_graph;
    result.streams = state_.runtime->queues().size();
    result.warning = queue_warning(state_.runtime->queues(), has_links() ? state_.ranks->gpus() : own_communicators());
    timeline.enqueued = std::move(result);
    return timeline;
  }

 private:
  bool has_links() const { return state_.ranks && state_.ranks->any(); }
  bool here(DeviceId d) const { return part_.virtual_of[d.value] >= 0; }
  /// The GPU of each communicator that carries messages within a GPU.
  std::vector<int> own_communicators() const {
    return std::vector<int>(static_cast<std::size_t>(state_.messages->communicators()),
                            state_.runtime->devices().gpu(0));
  }

  Timeline perform(const std::function<void()>& play_all) {
    if (placement_.world().size > 1)
      return run_together(p_, placement_, state_, options_, [&](HeartbeatMonitor& monitor) {
        monitor_ = &monitor;
        const std::unique_ptr<HeartbeatMonitor*, void (*)(HeartbeatMonitor**)> gone(
            &monitor_, [](HeartbeatMonitor** c) { *c = nullptr; });
        play_all();
      });
    if (state_.ranks) state_.ranks->open(at_most(kMostPatience));
    play_all();
    return outcome(p_, state_, options_);
  }

  void play(const std::function<void()>& enqueue) {
    GpuRuntime& runtime = *state_.runtime;
    runtime.finish();
    watch_ = std::make_unique<CompletionWatch>(p_, state_.events, options_.timeout);
    watch_->only([this](DeviceId d) { return here(d); });
    watch_->listen([this](bool moved) { return beat(moved); });
    watch_->between_looks(give_way_);
    const WaitPolicy until = [this](const std::function<bool()>& done) { watch_->until(done); };
    runtime.wait_by(until);
    if (state_.ranks) state_.ranks->wait_by(until);
    if (monitor_) state_.anchors = read_host_clocks(runtime.queues());
    enqueue();
    watch_->finish();
    runtime.wait_by(at_most(kMostPatience));
    runtime.finish();
    if (monitor_) state_.last_anchors = read_host_clocks(runtime.queues());
  }

  /// The bits that all processes have set.
  std::uint64_t bits_of_all(std::uint64_t local) {
    std::optional<std::uint64_t> common;
    if (!monitor_) return local;
    watch_->until([&] { return (common = monitor_->common_bits(local)).has_value(); });
    return *common;
  }

  ProgressEvent beat(bool moved) {
    const ProgressEvent news = monitor_ ? monitor_->beat(moved) : ProgressEvent::Alone;
    if (!state_.ranks || news == ProgressEvent::Stuck) return news;
    try {
      state_.ranks->require_sound();
    } catch (const CudaError&) {
      if (monitor_ && monitor_->last_event() == ProgressEvent::Stuck) return ProgressEvent::Stuck;
      throw;
    }
    return news;
  }

  const Program& p_;
  const Options& options_;
  const real::DevicePlacement& placement_;
  const ProcessShare& part_;
  RunState& state_;
  std::unique_ptr<CompletionWatch> watch_;
  std::function<void()> give_way_;
  HeartbeatMonitor* monitor_ = nullptr;  ///< Null unless other processes run the program, too.
};

/// What hangs is not waited for: it stays, where a search for leaks finds it.
void leave_behind(std::unique_ptr<RunState>& state) {
  static auto* const left = new std::vector<RunState*>;
  left->push_back(state.release());
}

void give_up(std::unique_ptr<RunState>& state) {
  if (state->ranks) state->ranks->abort();
  leave_behind(state);
}

}  // namespace

Timeline run(const Program& program, const KernelMaker& maker, const Options& options) {
  const real::DevicePlacement placement(program, world());
  const ProcessShare part = share_of(program, placement);
  std::unique_ptr<RunState> state = held_for(program, maker, options, placement, part);
  const LimitedLaunches limited(&state->runtime->launch_limit());
  try {
    return Runner(program, options, placement, part, *state).run();
  } catch (const BackendError&) {
    give_up(state);
    throw;
  } catch (const FailedElsewhere&) {
    give_up(state);
    throw;
  } catch (...) {
    if (state->ranks) state->ranks->abort();  // Others may be waited for on the GPUs.
    if (!state->runtime->finishes_within(options.timeout)) leave_behind(state);
    throw;
  }
}

}  // namespace stagecraft::cuda
