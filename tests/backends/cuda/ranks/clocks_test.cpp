// Clocks of several GPUs: their times on the clock of the machine.
#include <doctest/doctest.h>

#include "backends/cuda/ranks/together.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::clocks_test {

namespace {

/// An event on the stream after `seconds` of work.
cuda::SharedEvent* after(double seconds, cudaStream_t stream, cuda::InstructionEvents& events) {
  emulated_gpu::enqueue(
      stream, [] {}, seconds);
  cuda::SharedEvent* const event = events.pool.take(emulated_gpu::device_of(stream), true);
  cuda::EventPool::hold(event);
  event->record(stream);
  cudaStreamSynchronize(stream);
  return event;
}

/// `rate`: seconds of the machine in one of the GPU; 0: its clock is not read again after the run.
void check_iterations(double rate) {
  CAPTURE(rate);
  const double second = rate > 0 ? rate : 1;
  test::Case c;
  c.model = test::deep_net(2, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  c.iterations = 2;
  const Program p = c.program();
  emulated_gpu::Machine machine;
  machine.devices = 2;
  emulated_gpu::reset(machine);
  // Seconds: from the reading of the clock to the gate, from there to the end of an iteration, and to that of the next.
  const double gates[] = {1, 6}, ends[][2] = {{3, 14}, {4, 8}};
  cuda::RunState state;
  state.events.reset(p.size(), 0);
  state.events.start_events.assign(2, nullptr);
  const std::vector<cuda::EndEvent> wanted = cuda::end_events(p);
  for (int gpu = 0; gpu < 2; ++gpu) {
    cudaSetDevice(gpu);
    cudaStream_t stream{};
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    const auto anchor = std::make_shared<const cuda::Event>(cudaEventDefault);
    anchor->record(stream);
    state.anchors[gpu] = {anchor, 100, 0.25 + gpu};
    state.events.start_events[gpu] = after(gates[gpu], stream, state.events);
    double now = 0;
    for (std::size_t n = 0; n < p.size(); ++n) {
      const Instruction& i = p.instructions[InstructionId{n}];
      if (i.device.value != gpu) continue;
      state.events.gpu[n] = gpu;
      if (wanted[n] != cuda::EndEvent::Timed) continue;
      const double end = ends[gpu][p.iteration_of(i)];
      state.events.end[n] = after(end - now, stream, state.events);
      now = end;
    }
    if (rate > 0) {
      const auto last = std::make_shared<const cuda::Event>(cudaEventDefault);
      last->record(stream);
      cudaStreamSynchronize(stream);
      state.last_anchors[gpu] = {last, 100 + rate * (gates[gpu] + now), 0.5};
    }
  }
  state.events.reader = std::make_shared<cuda::EventReader>(p, state.events, wanted);
  real::Times times = cuda::times_of(p, real::DevicePlacement(p, World{}), state);
  CHECK(times.origin == doctest::Approx(100 + second).epsilon(1e-6));  // The first gate, on the clock of the machine.
  CHECK(times.uncertainty == 1.25);                                    // The larger.
  cuda::spread_over_iterations(p, times.start, times.end);
  for (std::size_t n = 0; n < p.size(); ++n) {
    const bool first = p.iteration_of(p.instructions[InstructionId{n}]) == 0;
    // 4 s after the later gate, which opens 5 s after the earlier one; and 14 s after the earlier one.
    REQUIRE(times.start[InstructionId{n}] == doctest::Approx(second * (first ? 0 : 9)).epsilon(1e-5));
    REQUIRE(times.end[InstructionId{n}] == doctest::Approx(second * (first ? 9 : 14)).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("an iteration ends with the last of its GPUs, also where the gate of one opens later") {
  check_iterations(0);
}

TEST_CASE("a clock that was read again after the run drifts evenly in between") {
  for (const double rate : {1.0, 0.5, 2.0}) check_iterations(rate);
}

}  // namespace stagecraft::clocks_test
