#include "backends/cuda/run.hpp"

#include <algorithm>

#include "backends/cuda/finish.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kMostAhead =
    64;  // Pieces of work in a queue, each of some launches: drivers hold about a thousand.

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
  held->session = std::make_unique<real::Session>(program, work, factory, here, true);
  Watch watch(program, held->marks, options.timeout);
  try {
    const auto keep_up = [&](int queue) { watch.keep_up(queue, kMostAhead); };
    Enqueuer enqueuer(program, yard, devices, *held->messages, {true, keep_up});
    yard.finish();
    enqueuer.run(*held->session, held->marks);
    watch.finish();
  } catch (const BackendError&) {
    static_cast<void>(held.release());
    throw;
  }
  yard.finish();
  return outcome(program, *held, options);
}

}  // namespace stagecraft::cuda
