#include "backends/cuda/ranks/seats.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <climits>
#include <set>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/libraries.hpp"
#include "backends/real/byte_text.hpp"
#include "backends/real/together.hpp"

namespace stagecraft::cuda {
namespace {

using Taken = std::set<std::string>;  // UUIDs, because containers on one machine can have different host names.

/// Takes up to `most` of the visible GPUs that no process has yet.
std::vector<int> take(const Sight& sight, std::size_t most, Taken& taken) {
  std::vector<int> own;
  for (std::size_t g = 0; g < sight.gpus.size() && own.size() < most; ++g)
    if (taken.insert(sight.gpus[g]).second) own.push_back(static_cast<int>(g));
  return own;
}

std::string version_text(int v) { return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100); }

void put(real::ByteWriter& out, const std::string& text) { out.put(std::vector<char>(text.begin(), text.end())); }

std::string get(real::ByteReader& in) {
  const std::vector<char> text = in.get_list<char>();
  return {text.begin(), text.end()};
}

}  // namespace

std::string to_bytes(const Sight& sight) {
  real::ByteWriter out;
  put(out, sight.host);
  out.put(sight.gpus.size());
  for (const std::string& gpu : sight.gpus) put(out, gpu);
  out.put(sight.devices);
  out.put(sight.nccl);
  return out.take();
}

Sight sight_from(const std::string& bytes) {
  real::ByteReader in(bytes);
  Sight sight;
  sight.host = get(in);
  sight.gpus.resize(in.get<std::size_t>());
  for (std::string& gpu : sight.gpus) gpu = get(in);
  sight.devices = in.get<int>();
  sight.nccl = in.get<int>();
  return sight;
}

std::vector<std::vector<int>> share_out(const std::vector<Sight>& sights) {
  for (const bool one_each : {false, true}) {
    Taken taken;
    std::vector<std::vector<int>> shares;
    bool enough = true;
    for (const Sight& s : sights) {
      const std::size_t most = one_each ? 1 : static_cast<std::size_t>(s.devices);
      shares.push_back(take(s, most, taken));
      enough = enough && shares.back().size() == most;
      if (one_each && shares.back().empty())
        throw BackendError(fmt::format(
            "process {} of {} finds no GPU for itself on {}: it sees {}, and those before it have them. NCCL "
            "takes a GPU once: start no more processes on a machine than it has GPUs",
            shares.size() - 1, sights.size(), s.host, s.gpus.size()));
    }
    if (enough) return shares;
  }
  throw InternalError("GPUs were not shared out");
}

void require_same_nccl(const std::vector<Sight>& sights) {
  for (std::size_t r = 0; r < sights.size(); ++r) {
    if (sights[r].nccl == 0)
      throw BackendError(
          fmt::format("process {} of {} finds no libnccl.so.2, which carries messages between "
                      "processes: STAGECRAFT_CUDA_LIBRARIES names folders to look in",
                      r, sights.size()));
    if (sights[r].nccl != sights.front().nccl)
      throw BackendError(fmt::format("process {} of {} has NCCL {}, and the first has {}: they have to be the same", r,
                                     sights.size(), version_text(sights[r].nccl), version_text(sights.front().nccl)));
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
    const int owner = dealing.owner(DeviceId{d});
    if (owner >= 0) seats[d] = {owner, all.at(owner).at(d)};
  }
  return seats;
}

}  // namespace stagecraft::cuda
