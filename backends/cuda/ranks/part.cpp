#include "backends/cuda/ranks/part.hpp"

#include <unistd.h>

#include <climits>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/libraries.hpp"
#include "backends/real/byte_text.hpp"
#include "backends/real/company.hpp"

namespace stagecraft::cuda {
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

Sight look_around(int devices) {
  prepare_driver();
  Sight sight;
  sight.host = host_name();
  sight.devices = devices;
  sight.nccl = nccl_version();
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  for (int g = 0; g < count; ++g) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, g), "cudaGetDeviceProperties");
    sight.gpus.emplace_back(properties.uuid.bytes, sizeof properties.uuid.bytes);
  }
  return sight;
}

}  // namespace

Part part_of(const Program& program, const real::Dealing& dealing) {
  Part part;
  for (int d = 0; d < program.devices; ++d) part.virtual_of.push_back(dealing.here(DeviceId{d}) ? part.devices++ : -1);
  if (dealing.world().size == 1) return part;
  std::vector<Sight> sights;
  for (const std::string& told : real::exchange(to_bytes(look_around(part.devices))))
    sights.push_back(sight_from(told));
  require_same_nccl(sights);
  part.gpus = share_out(sights)[dealing.world().rank];
  return part;
}

std::vector<Seat> seats_of(const real::Dealing& dealing, const std::vector<int>& gpus) {
  std::vector<Seat> seats(gpus.size());
  std::vector<std::vector<int>> all{gpus};
  if (dealing.world().size > 1) {
    real::ByteWriter out;
    out.put(gpus);
    all.clear();
    for (const std::string& told : real::exchange(out.take())) all.push_back(real::ByteReader(told).get_list<int>());
  }
  for (std::size_t d = 0; d < seats.size(); ++d) {
    const int owner = dealing.owner(DeviceId{static_cast<std::int64_t>(d)});
    if (owner >= 0) seats[d] = {owner, all.at(owner).at(d)};
  }
  return seats;
}

}  // namespace stagecraft::cuda
