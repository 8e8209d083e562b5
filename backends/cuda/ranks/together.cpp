// Runs a program together with other processes, relates the clocks of the GPUs, and joins the times on the first
// process.

#include "backends/cuda/ranks/together.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "backends/cuda/completion_watch.hpp"
#include "backends/real/byte_text.hpp"
#include "backends/real/clocks.hpp"
#include "backends/real/multi_process_run.hpp"

namespace stagecraft::cuda {
namespace {

constexpr int kRounds = 32;
constexpr double kPatience = 10;

Anchor read_host_clock(const Queues& queues, int queue) {
  queues.select(queue);
  Anchor best;
  for (int round = 0; round < kRounds; ++round) {
    const auto event = std::make_shared<const Event>(cudaEventDefault);
    const double before = real::steady_seconds();
    event->record(queues.stream(queue));
    while (!event->over())
      if (real::steady_seconds() - before > kPatience) throw CudaError("an idle GPU does not answer");
    const double after = real::steady_seconds();
    const real::ClockReading reading = real::clock_reading(before, before, after);
    if (round == 0 || reading.uncertainty < best.uncertainty) best = {event, reading.here, reading.uncertainty};
  }
  return best;
}

}  // namespace

std::map<int, Anchor> read_host_clocks(const Queues& queues) {
  std::map<int, Anchor> anchors;
  for (int q = 0; q < queues.size(); ++q)
    if (!anchors.count(queues.gpu(q))) anchors[queues.gpu(q)] = read_host_clock(queues, q);
  return anchors;
}

namespace {

/// What the others have to know of this process in the end.
std::string report_of(const RunState& state) {
  state.session->require_finite();
  const std::string machine = state.runtime->devices().description();
  real::ByteWriter out;
  out.put(std::vector<char>(machine.begin(), machine.end()));
  return out.take() + real::to_bytes(state.session->records());
}

std::string machines_of(const std::vector<std::string>& each) {
  if (std::count(each.begin(), each.end(), each.front()) == static_cast<std::ptrdiff_t>(each.size()))
    return fmt::format("{} processes, in each {}", each.size(), each.front());
  std::string text = fmt::format("{} processes: ", each.size());
  for (std::size_t r = 0; r < each.size(); ++r) text += (r > 0 ? ", " : "") + each[r];
  return text;
}

Timeline outcome(const Program& program, real::CollectedRun joint, const RunState& state, bool timed) {
  Timeline timeline;
  timeline.clock = Clock::Device;
  timeline.processes = world().size;
  timeline.instruction_times = timed;
  timeline.elsewhere = world().rank > 0;
  if (timeline.elsewhere) return timeline;
  timeline.clock_uncertainty = {joint.uncertainty};
  const double first = *std::min_element(joint.times.start.begin(), joint.times.start.end());
  for (auto* column : {&joint.times.start, &joint.times.end})
    for (double& t : *column) t -= first;
  if (!timed)
    spread_over_iterations(program, joint.times.start, joint.times.end);  // The last of all processes ends one.
  timeline.start = std::move(joint.times.start);
  timeline.end = std::move(joint.times.end);
  std::vector<std::string> machines;
  std::vector<real::Records> records;
  for (const std::string& bytes : joint.reports) {
    real::ByteReader in(bytes);
    const std::vector<char> machine = in.get_list<char>();
    machines.emplace_back(machine.begin(), machine.end());
    records.push_back(real::records_from(in.rest()));
  }
  timeline.provenance.machine = machines_of(machines);
  timeline.learnt = state.session->learnt(real::merged(std::move(records)));
  return timeline;
}

/// The part of this process, while others do theirs. `perform` plays the program.
void perform_together(RunState& state, double timeout, const std::function<void(HeartbeatMonitor&)>& perform) {
  HeartbeatMonitor monitor(timeout);
  try {
    if (state.ranks) state.ranks->open(monitor.at_most(kMostPatience));
    perform(monitor);
    monitor.through();
  } catch (const CudaError&) {  // It may be what a failure elsewhere looks like from here.
    monitor.last_event();
    monitor.failed();
    throw;
  } catch (...) {
    monitor.failed();
    throw;
  }
}

}  // namespace

real::Times times_of(const Program& program, const real::DevicePlacement& placement, const RunState& state) {
  state.events.reader->read_all();
  real::Times times;
  times.start = state.events.reader->start();
  times.end = state.events.reader->end();
  std::map<int, double> gates, rates;
  for (const auto& [gpu, anchor] : state.anchors) {
    const auto last = state.last_anchors.find(gpu);
    rates[gpu] = last == state.last_anchors.end() ? 1 : anchor.rate_to(last->second);
    gates[gpu] = anchor.seconds + rates[gpu] * (anchor.seconds_at(*state.events.start_events[gpu]) - anchor.seconds);
    times.uncertainty = std::max(times.uncertainty, anchor.uncertainty);
    if (last != state.last_anchors.end()) times.uncertainty = std::max(times.uncertainty, last->second.uncertainty);
  }
  times.origin = gates.begin()->second;
  for (const InstructionId n : program.instructions.ids()) {
    if (!placement.here(program.instructions[n].device)) continue;
    const double later = gates.at(state.events.gpu[n.value]) - times.origin;
    const double rate = rates.at(state.events.gpu[n.value]);
    times.start[n] = rate * times.start[n] + later;
    times.end[n] = rate * times.end[n] + later;
  }
  return times;
}

Timeline run_together(const Program& program, const real::DevicePlacement& placement, RunState& state,
                      const Options& options, const std::function<void(HeartbeatMonitor&)>& perform) {
  const bool timed = options.gpu.timing == GpuTiming::Events;
  const auto run_local = [&] {
    perform_together(state, options.timeout, perform);
    return times_of(program, placement, state);
  };
  return outcome(program,
                 real::run_together(program, placement, options.timeout, run_local, [&] { return report_of(state); }),
                 state, timed);
}

}  // namespace stagecraft::cuda
