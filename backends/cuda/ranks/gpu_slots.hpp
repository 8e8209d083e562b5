#pragma once

#include <compare>
#include <string>
#include <vector>

#include "backends/real/device_placement.hpp"

namespace stagecraft::cuda {

/// Where a device of a plan is: on which GPU of which process.
struct GpuSlot {
  int process = -1, gpu = -1;  ///< -1: the device has nothing to do.
  auto operator<=>(const GpuSlot&) const = default;
};

/// What a process tells the others about the GPUs it sees.
struct GpuInventory {
  std::string host;
  std::vector<std::string> gpus;  ///< UUIDs, which are unique over all machines.
  int devices = 0;                ///< The number of plan devices that it has to place.
  int nccl = 0;                   ///< Version; 0: there is none.
};
std::string to_bytes(const GpuInventory&);
GpuInventory inventory_from(const std::string&);

/// Which of the GPUs it sees each process takes: one for each of its devices where there are enough for all processes,
/// else one; never one that another has. BackendError when a process finds none.
std::vector<std::vector<int>> share_out(const std::vector<GpuInventory>&);

/// BackendError when the processes have different versions of NCCL, or some have none.
void require_same_nccl(const std::vector<GpuInventory>&);

/// What of a run is done by this process.
struct ProcessShare {
  int devices = 0;              ///< The number of the program's devices in this process.
  std::vector<int> virtual_of;  ///< The virtual device in this process for each device of the program; -1: none.
  std::vector<int> gpus;        ///< The GPUs that this process may use; empty: all visible ones.
};

/// Places the devices of this process; each of several processes gets different GPUs. BackendError if there are too few
/// GPUs or the versions of NCCL differ.
ProcessShare share_of(const Program&, const real::DevicePlacement&);

/// Where all devices of the program are, when here they are on these GPUs (-1: not here).
std::vector<GpuSlot> slots_of(const real::DevicePlacement&, const std::vector<int>& gpus);

}  // namespace stagecraft::cuda
