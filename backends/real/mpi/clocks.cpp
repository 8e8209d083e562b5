#include "backends/real/mpi/clocks.hpp"

#include "backends/real/mpi/wire.hpp"
#include "backends/real/pause.hpp"
#include "backends/world.hpp"

namespace stagecraft::real {
namespace {

constexpr int kRounds = 32;

void answer(int process) {
  send_text(process, "your turn");
  for (int round = 0; round < kRounds; ++round) {
    check(MPI_Recv(nullptr, 0, MPI_BYTE, process, 0, wires().words, MPI_STATUS_IGNORE));
    const double now = steady_seconds();
    check(MPI_Send(&now, 1, MPI_DOUBLE, process, 0, wires().words));
  }
}

ClockReading ask() {
  receive_text(0);
  ClockReading best;
  for (int round = 0; round < kRounds; ++round) {
    double there = 0;
    const double asked = steady_seconds();
    check(MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, wires().words));
    check(MPI_Recv(&there, 1, MPI_DOUBLE, 0, 0, wires().words, MPI_STATUS_IGNORE));
    const ClockReading reading = clock_reading(asked, there, steady_seconds());
    if (round == 0 || reading.uncertainty < best.uncertainty) best = reading;
  }
  return best;
}

}  // namespace

ClockReading read_clock() {
  if (world().rank > 0) return ask();
  for (int process = 1; process < world().size; ++process) answer(process);
  return {};
}

}  // namespace stagecraft::real
