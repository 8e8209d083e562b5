#include "backends/cuda/run.hpp"

#include "backends/cuda/finish.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kMostAhead =
    64;  // Pieces of work in a queue, each of some launches: drivers hold about a thousand.

constexpr double kMostPatience = 300;  // Seconds for what is not part of the program, as evaluations.

/// What has to be enqueued for all of the first iteration. The first time kernels are loaded, algorithms are chosen and
/// memory is taken, which waits for the device.
std::size_t first_iteration(const Program& program) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < program.size(); ++n)
    if (program.iteration_of(program.instructions[n]) == 0) count = n + 1;
  return count;
}

/// Virtual devices, numbered in the order of the program's that have work; -1: none.
std::vector<int> virtual_devices(const Program& program, int& count) {
  std::vector<int> devices(static_cast<std::size_t>(program.devices), -1);
  for (const Instruction& i : program.instructions) devices[static_cast<std::size_t>(i.device)] = 0;
  count = 0;
  for (int& d : devices)
    if (d == 0) d = count++;
  return devices;
}

std::unique_ptr<Messages> messages_of(const Program& program, const Yard& yard, GpuMessages kind) {
  if (kind == GpuMessages::Copy) return copied_messages();
  if (yard.devices().carve() == Carve::Gpus && yard.devices().count() > 1)
    throw InputError("messages by NCCL are from a GPU to itself so far, and here each device has one of its own",
                     "run.gpu.messages: copy");
  return nccl_messages(program);
}

void require_one_process() {
  if (world().size > 1)
    throw InputError("the cuda backend runs in one process, and here several were started together",
                     "leave out mpirun");
}

/// What a run holds on the device. Of one that is stuck nothing is given back: that would wait for ever.
struct Held {
  std::unique_ptr<Yard> yard;
  std::unique_ptr<Messages> messages;
  std::unique_ptr<real::Session> session;
  Marks marks;
};

Timeline outcome(const Program& program, Held& held, const Options& options) {
  Timeline timeline;
  timeline.clock = Clock::Device;
  read_times(program, held.marks, timeline.start, timeline.end);
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

}  // namespace

Timeline run(const Program& program, const Work& work, const KernelMaker& maker, const Options& options) {
  require_one_process();
  int count = 0;
  const std::vector<int> devices = virtual_devices(program, count);
  auto held = std::make_unique<Held>();
  held->yard = std::make_unique<Yard>(count, maker, real::width_of(work.model), options.fills_new_memory);
  Yard& yard = *held->yard;
  held->messages = messages_of(program, yard, options.gpu.messages);
  const auto factory = [&](std::size_t, DeviceId d) {
    return queue_kernels(yard, devices[static_cast<std::size_t>(d)]);
  };
  const auto here = [&](DeviceId d) { return devices[static_cast<std::size_t>(d)] >= 0; };
  std::unique_ptr<Watch> watch;
  const auto keep_up = [&](int queue) { watch->keep_up(queue, kMostAhead); };
  try {
    Enqueuer enqueuer(program, yard, devices, *held->messages, {true, keep_up});
    const auto play = [&](std::size_t instructions) {
      held->session.reset();
      held->session = std::make_unique<real::Session>(program, work, factory, here, true);
      yard.finish();
      watch = std::make_unique<Watch>(program, held->marks, options.timeout);
      yard.wait_by([&](const std::function<bool()>& done) { watch->until(done); });
      enqueuer.run(*held->session, held->marks, instructions);
      watch->finish();
      yard.wait_by(at_most(kMostPatience));
      yard.finish();
    };
    if (options.warm_up) play(first_iteration(program));
    play(program.size());
    return outcome(program, *held, options);
  } catch (const BackendError&) {
    static_cast<void>(held.release());
    throw;
  }
}

}  // namespace stagecraft::cuda
