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
    const double answered = steady_seconds(), half = (answered - asked) / 2;
    if (round == 0 || half < best.uncertainty) best = {answered, there - (asked + half), half};
  }
  return best;
}

}  // namespace

ClockReading read_clock() {
  if (world().rank > 0) return ask();
  for (int process = 1; process < world().size; ++process) answer(process);
  return {};
}

double on_first_clock(double seconds, const ClockReading& before, const ClockReading& after) {
  const double apart = after.here - before.here;
  const double drift = apart > 0 ? (after.offset - before.offset) / apart : 0;
  return seconds + before.offset + drift * (seconds - before.here);
}

}  // namespace stagecraft::real
