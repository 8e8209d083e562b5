#include "backends/real/device_placement.hpp"

#include <fmt/core.h>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

/// Variables in which launchers say who a process is: Open MPI; MPICH and Intel MPI; Slurm with PMIx; MVAPICH.
constexpr const char* kLaunchers[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                         {"PMI_RANK", "PMI_SIZE"},
                                         {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
                                         {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"}};

int number(const char* variable) {
  const char* const text = std::getenv(variable);
  int value = -1;
  if (text) std::from_chars(text, text + std::strlen(text), value);
  return value;
}

}  // namespace

World launched() {
  for (const auto& [rank, size] : kLaunchers) {
    const World world{number(rank), number(size)};
    if (world.rank >= 0 && world.size > world.rank) return world;
  }
  return {};
}

}  // namespace stagecraft

namespace stagecraft::real {

DevicePlacement::DevicePlacement(const Program& program, World world) : world_(world), owner_(program.devices, -1) {
  IdVector<DeviceId, bool> used(owner_.size(), false);
  for (const Instruction& i : program.instructions) used[i.device] = true;
  std::int64_t count = 0;
  for (const bool u : used) count += u;
  if (world.size > 1 && world.size > count)
    throw InputError(
        fmt::format("{} processes were started, but only {} device{} anything to do", world.size, count,
                    count == 1 ? " has" : "s have"),
        count > 1 ? fmt::format("mpirun -n {}, or a plan with more devices", count) : "start it without mpirun");
  std::int64_t next = 0;
  for (const DeviceId d : owner_.ids())
    if (used[d]) owner_[d] = static_cast<int>(next++ * world.size / count);
}

}  // namespace stagecraft::real
