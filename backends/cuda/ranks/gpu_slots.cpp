// Decides on which GPU of which process each device of a plan runs, from what all processes see.

#include "backends/cuda/ranks/gpu_slots.hpp"

#include <fmt/core.h>
#include <unistd.h>
#include <climits>
#include <set>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/libraries.hpp"
#include "backends/real/byte_text.hpp"
#include "backends/real/multi_process_run.hpp"

namespace stagecraft::cuda {
namespace {

using Taken = std::set<std::string>;  // UUIDs, because containers on one machine can have different host names.

/// Takes up to `max_gpus` of the visible GPUs that no process has yet.
std::vector<int> take(const GpuInventory& inventory, std::size_t max_gpus, Taken& taken) {
  std::vector<int> chosen;
  for (std::size_t g = 0; g < inventory.gpus.size() && chosen.size() < max_gpus; ++g)
    if (taken.insert(inventory.gpus[g]).second) chosen.push_back(static_cast<int>(g));
  return chosen;
}

std::string version_text(int v) { return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100); }

void put(real::ByteWriter& out, const std::string& text) { out.put(std::vector<char>(text.begin(), text.end())); }

std::string get(real::ByteReader& in) {
  const std::vector<char> text = in.get_list<char>();
  return {text.begin(), text.end()};
}

}  // namespace

std::string to_bytes(const GpuInventory& inventory) {
  real::ByteWriter out;
  put(out, inventory.host);
  out.put(inventory.gpus.size());
  for (const std::string& gpu : inventory.gpus) put(out, gpu);
  out.put(inventory.devices);
  out.put(inventory.nccl);
  return out.take();
}

GpuInventory inventory_from(const std::string& bytes) {
  real::ByteReader in(bytes);
  GpuInventory inventory;
  inventory.host = get(in);
  inventory.gpus.resize(in.get<std::size_t>());
  for (std::string& gpu : inventory.gpus) gpu = get(in);
  inventory.devices = in.get<int>();
  inventory.nccl = in.get<int>();
  return inventory;
}

std::vector<std::vector<int>> share_out(const std::vector<GpuInventory>& inventories) {
  for (const bool one_each : {false, true}) {
    Taken taken;
    std::vector<std::vector<int>> shares;
    bool enough = true;
    for (const GpuInventory& s : inventories) {
      const std::size_t wanted = one_each ? 1 : static_cast<std::size_t>(s.devices);
      shares.push_back(take(s, wanted, taken));
      enough = enough && shares.back().size() == wanted;
      if (one_each && shares.back().empty())
        throw BackendError(fmt::format(
            "process {} of {} finds no GPU for itself on {}: it sees {}, and those before it have them. NCCL "
            "takes a GPU once: start no more processes on a machine than it has GPUs",
            shares.size() - 1, inventories.size(), s.host, s.gpus.size()));
    }
    if (enough) return shares;
  }
  throw InternalError("GPUs were not shared out");
}

void require_same_nccl(const std::vector<GpuInventory>& inventories) {
  for (std::size_t r = 0; r < inventories.size(); ++r) {
    if (inventories[r].nccl == 0)
      throw BackendError(
          fmt::format("process {} of {} finds no libnccl.so.2, which carries messages between "
                      "processes: STAGECRAFT_CUDA_LIBRARIES names folders to look in",
                      r, inventories.size()));
    if (inventories[r].nccl != inventories.front().nccl)
      throw BackendError(fmt::format("process {} of {} has NCCL {}, and the first has {}: they have to be the same", r,
                                     inventories.size(), version_text(inventories[r].nccl),
                                     version_text(inventories.front().nccl)));
  }
}

namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

int nccl_version() {
  int version = 0;
  try {
    const Nccl nccl;
    if (nccl.ncclGetVersion(&version) != ncclSuccess) return 0;
  } catch (const CudaError&) {  // Said later, with the number of the process.
    return 0;
  }
  return version;
}

GpuInventory look_around(int devices) {
  prepare_driver();
  GpuInventory inventory;
  inventory.host = host_name();
  inventory.devices = devices;
  inventory.nccl = nccl_version();
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  for (int g = 0; g < count; ++g) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, g), "cudaGetDeviceProperties");
    inventory.gpus.emplace_back(properties.uuid.bytes, sizeof properties.uuid.bytes);
  }
  return inventory;
}

}  // namespace

ProcessShare share_of(const Program& program, const real::DevicePlacement& placement) {
  ProcessShare part;
  for (int d = 0; d < program.devices; ++d)
    part.virtual_of.push_back(placement.here(DeviceId{d}) ? part.devices++ : -1);
  if (placement.world().size == 1) return part;
  std::vector<GpuInventory> inventories;
  for (const std::string& text : real::all_gather_texts(to_bytes(look_around(part.devices))))
    inventories.push_back(inventory_from(text));
  require_same_nccl(inventories);
  part.gpus = share_out(inventories)[placement.world().rank];
  return part;
}

std::vector<GpuSlot> slots_of(const real::DevicePlacement& placement, const std::vector<int>& gpus) {
  std::vector<GpuSlot> slots(gpus.size());
  std::vector<std::vector<int>> gpu_lists{gpus};
  if (placement.world().size > 1) {
    real::ByteWriter out;
    out.put(gpus);
    gpu_lists.clear();
    for (const std::string& text : real::all_gather_texts(out.take()))
      gpu_lists.push_back(real::ByteReader(text).get_list<int>());
  }
  for (std::size_t d = 0; d < slots.size(); ++d) {
    const int owner = placement.owner(DeviceId{d});
    if (owner >= 0) slots[d] = {owner, gpu_lists.at(owner).at(d)};
  }
  return slots;
}

}  // namespace stagecraft::cuda
