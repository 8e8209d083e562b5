#include "backends/real/mpi/pulses.hpp"

#include "backends/real/mpi/transport.hpp"

namespace stagecraft::real {

Pulses::~Pulses() {
  if (request_ != MPI_REQUEST_NULL) leave_behind(numbers_);
}

std::optional<Transport::Pulse> Pulses::pulse(const Transport::Pulse& own) {
  if (request_ == MPI_REQUEST_NULL) {
    numbers_->own = {own.moving, own.failed, own.stuck, own.unfinished};
    check(MPI_Iallreduce(numbers_->own.data(), numbers_->all.data(), 4, MPI_INT, MPI_SUM, wires().pulses, &request_));
  }
  int done = 0;
  check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE));
  if (!done) return {};
  const auto& all = numbers_->all;
  return Transport::Pulse{all[0], all[1], all[2], all[3]};
}

}  // namespace stagecraft::real
