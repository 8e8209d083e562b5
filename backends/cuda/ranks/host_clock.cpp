#include "backends/cuda/ranks/host_clock.hpp"

#include "backends/real/clock_reading.hpp"
#include "backends/real/pause.hpp"

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

}  // namespace stagecraft::cuda
