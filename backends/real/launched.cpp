#include <charconv>
#include <cstdlib>
#include <cstring>

#include "backends/world.hpp"

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
