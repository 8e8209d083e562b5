#pragma once

#include <vector>

#include "backends/cuda/ranks/seats.hpp"
#include "backends/real/dealing.hpp"

namespace stagecraft::cuda {

/// What of a run is done by this process.
struct Part {
  int devices = 0;              ///< How many of the program's are here.
  std::vector<int> virtual_of;  ///< Of each device of the program: which virtual device it is here; -1: none.
  std::vector<int> gpus;        ///< That this process may use; empty: all it sees.
};

/// Devices as they are dealt; of several processes each gets GPUs of its own. BackendError when there are too few of
/// them, or versions of NCCL differ.
Part part_of(const Program&, const real::Dealing&);

/// Where all devices of the program are, when here they are on these GPUs (-1: not here).
std::vector<Seat> seats_of(const real::Dealing&, const std::vector<int>& gpus);

}  // namespace stagecraft::cuda
