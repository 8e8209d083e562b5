#include "backends/cuda/run.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "backends/cuda/finish.hpp"
#include "backends/cuda/ranks/seats.hpp"
#include "backends/cuda/ranks/together.hpp"
#include "backends/cuda/repeat.hpp"
#include "backends/real/together.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kMostAhead =
    64;  // Pieces of work in a queue, each of some launches: drivers hold about a thousand.

constexpr std::int64_t kMostCounted = 1 << 20;  // Updates: floats count them one by one, and each has 16 bytes at most.

/// GPUs of the devices of the program; -1: none here.
std::vector<int> gpus_of(const std::vector<int>& devices, const VirtualDevices& virtual_devices) {
  std::vector<int> gpus;
  for (const int d : devices) gpus.push_back(d < 0 ? -1 : virtual_devices.gpu(d));
  return gpus;
}

std::unique_ptr<Messages> messages_of(const Program& program, const std::vector<int>& gpus, const Options& options) {
  switch (options.gpu.messages) {
    case GpuMessages::Copy:
      return copied_messages(program, gpus);
    case GpuMessages::Kernel:
      return kernel_messages(options.copy_kernel);
    case GpuMessages::Nccl:
      return nccl_messages(program, gpus);
  }
  throw InternalError("no such messages");
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

/// Null where nothing goes from GPU to GPU by NCCL.
std::unique_ptr<Ranks> ranks_of(const Program& program, const real::Dealing& dealing, const std::vector<int>& gpus,
                                const GpuOptions& options) {
  const World world = dealing.world();
  const ByNccl by_nccl{options.messages == GpuMessages::Nccl,
                       options.sums == GpuSums::Collective && !program.collectives.empty()};
  if (world.size == 1 && !by_nccl.messages && !by_nccl.sums) return nullptr;
  const auto alone = [](const std::string& own) { return std::vector<std::string>{own}; };
  auto ranks = std::make_unique<Ranks>(program, seats_of(dealing, gpus), world.rank, by_nccl,
                                       world.size > 1 ? Exchange(real::exchange) : alone);
  return ranks->any() ? std::move(ranks) : nullptr;
}

/// Why iterations of this run are not graphs; empty: they are.
std::string set_up_graphs(const Program& program, Enqueuer& enqueuer, Held& held) {
  std::string why_not;
  if (world().size > 1)
    return "NCCL wants all processes to capture and launch alike, and each sees for itself what repeats";
  if (held.ranks) return "work of NCCL between GPUs, launched by one thread, may wait for each other";
  if (program.iterations < 2) return "there is one iteration only";
  std::vector<Iteration> iterations = iterations_of(program, program.workload->training.evaluate_every > 0, why_not);
  if (iterations.empty()) return why_not;
  held.repeater = std::make_unique<Repeater>(*held.yard, enqueuer, std::move(iterations));
  const std::int64_t updates = *std::max_element(program.updates.begin(), program.updates.end());
  held.yard->count_steps(static_cast<int>(std::min(program.iterations * updates, kMostCounted)));
  return why_not;
}

Timeline outcome(const Program& program, Held& held, const Options& options) {
  Timeline timeline;
  timeline.clock = Clock::Device;
  timeline.instruction_times = options.gpu.timing == GpuTiming::Events;
  if (timeline.instruction_times) {
    read_times(program, held.marks, timeline.start, timeline.end);
  } else {
    timeline.end = read_iteration_ends(program, held.marks, end_events(program));
    spread_over_iterations(program, timeline.start, timeline.end);
  }
  bool diverged = false;
  try {
    held.session->require_finite();
  } catch (const Infeasible&) {
    if (!options.one_thread) throw;
    diverged = true;
  }
  timeline.learnt = held.session->learnt(held.session->records());
  timeline.learnt->diverged = diverged;
  timeline.provenance.machine = held.yard->devices().description();
  return timeline;
}

/// What the devices of this process hold, and who carries messages between them.
std::unique_ptr<Held> held_for(const Program& program, const KernelMaker& maker, const Options& options,
                               const real::Dealing& dealing, const Part& part) {
  auto held = std::make_unique<Held>();
  held->yard = std::make_unique<Yard>(part.devices, maker, real::width_of(*program.workload), options.fills_new_memory,
                                      part.gpus);
  const VirtualDevices& devices = held->yard->devices();
  const std::vector<int> gpus = gpus_of(part.virtual_of, devices);
  if (options.gpu.messages == GpuMessages::Kernel) require_reach(program, part.virtual_of, devices);
  held->messages = messages_of(program, gpus, options);
  held->ranks = ranks_of(program, dealing, gpus, options.gpu);
  return held;
}

/// One run, with what waiting for it takes.
class Runner {
 public:
  Runner(const Program& program, const Options& options, const real::Dealing& dealing, const Part& part, Held& held)
      : p_(program), options_(options), dealing_(dealing), part_(part), held_(held) {}

  Timeline run() {
    const bool timed = options_.gpu.timing == GpuTiming::Events;
    const auto keep_up = [this](int queue) { watch_->keep_up(queue, kMostAhead); };
    Enqueuer enqueuer(p_, *held_.yard, part_.virtual_of, *held_.messages,
                      {timed, keep_up, timed ? std::vector<EndEvent>{} : end_events(p_)}, held_.ranks.get());
    if (held_.ranks) require_queues(held_.yard->queues(), held_.ranks->gpus());
    const auto factory = [this](std::size_t, DeviceId d) {
      return queue_kernels(*held_.yard, std::max(0, part_.virtual_of[d.value]));
    };
    held_.session = std::make_unique<real::Session>(
        p_, factory, [this](DeviceId d) { return here(d); }, true);
    const std::string no_graph = options_.gpu.graph ? set_up_graphs(p_, enqueuer, held_) : "";
    const Stage stage{p_,          *held_.yard,
                      enqueuer,    *held_.session,
                      held_.marks, [this](const std::function<void()>& enqueue) { play(enqueue); }};
    Enqueued told;
    Timeline timeline = perform([&] {
      told = held_.repeater ? play_by_graphs(stage, *held_.repeater, options_.warm_up)
                            : play_by_calls(stage, options_.warm_up);
    });
    if (!no_graph.empty()) told.no_graph = no_graph;
    timeline.enqueued = std::move(told);
    return timeline;
  }

 private:
  bool here(DeviceId d) const { return part_.virtual_of[d.value] >= 0; }

  Timeline perform(const std::function<void()>& play_all) {
    if (dealing_.world().size > 1)
      return run_together(p_, dealing_, held_, options_, [&](Crew& crew) {
        crew_ = &crew;
        const std::unique_ptr<Crew*, void (*)(Crew**)> gone(&crew_, [](Crew** c) { *c = nullptr; });
        play_all();
      });
    if (held_.ranks) held_.ranks->open(at_most(kMostPatience));
    play_all();
    return outcome(p_, held_, options_);
  }

  void play(const std::function<void()>& enqueue) {
    Yard& yard = *held_.yard;
    yard.finish();
    watch_ = std::make_unique<Watch>(p_, held_.marks, options_.timeout);
    watch_->only([this](DeviceId d) { return here(d); });
    watch_->listen([this](bool moved) { return beat(moved); });
    const Until until = [this](const std::function<bool()>& done) { watch_->until(done); };
    yard.wait_by(until);
    if (held_.ranks) held_.ranks->wait_by(until);
    if (crew_) held_.anchors = read_host_clocks(yard.queues());
    enqueue();
    watch_->finish();
    yard.wait_by(at_most(kMostPatience));
    yard.finish();
  }

  News beat(bool moved) {
    const News news = crew_ ? crew_->beat(moved) : News::Alone;
    if (!held_.ranks || news == News::Stuck) return news;
    try {
      held_.ranks->require_sound();
    } catch (const CudaError&) {
      if (crew_ && crew_->hear_out() == News::Stuck) return News::Stuck;
      throw;
    }
    return news;
  }

  const Program& p_;
  const Options& options_;
  const real::Dealing& dealing_;
  const Part& part_;
  Held& held_;
  std::unique_ptr<Watch> watch_;
  Crew* crew_ = nullptr;  ///< Null unless other processes run the program, too.
};

/// What hangs is not waited for: it stays, where a search for leaks finds it.
void leave_behind(std::unique_ptr<Held>& held) {
  static auto* const left = new std::vector<Held*>;
  left->push_back(held.release());
}

void give_up(std::unique_ptr<Held>& held) {
  if (held->ranks) held->ranks->abort();
  leave_behind(held);
}

}  // namespace

Timeline run(const Program& program, const KernelMaker& maker, const Options& options) {
  const real::Dealing dealing(program, world());
  const Part part = part_of(program, dealing);
  std::unique_ptr<Held> held = held_for(program, maker, options, dealing, part);
  try {
    return Runner(program, options, dealing, part, *held).run();
  } catch (const BackendError&) {
    give_up(held);
    throw;
  } catch (const FailedElsewhere&) {
    give_up(held);
    throw;
  } catch (...) {
    if (held->ranks) held->ranks->abort();  // Others may be waited for on the GPUs.
    if (!held->yard->ended(options.timeout)) leave_behind(held);
    throw;
  }
}

}  // namespace stagecraft::cuda
