#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A communicator. Ranks of one process or of several talk through files in a folder named from the unique id.
struct ncclComm {
  int ranks = 1, rank = 0, device = 0;
  bool blocking = true, met = false, launched = false, aborted = false;
  int looks = 0;       ///< Queries until a nonblocking call is through.
  bool alone = false;  ///< All ranks are in this process.
  ncclResult_t error = ncclSuccess;
  std::string folder;
  std::vector<long> sent, received;  ///< Messages so far, to and from each rank.
  long sums = 0;                     ///< All-reduces so far.
  const void* capture = nullptr;     ///< The capture in which `last` was recorded, or null.
  cudaEvent_t last{};                ///< After its newest kernel: kernels of one communicator follow each other.
};

namespace stagecraft::emulated_gpu {

/// What is added up; None: it is a message.
enum class Summed : std::uint8_t { None, Floats, Doubles };

/// One end of a message; or what a rank brings to a sum, from and to its own memory.
struct Half {
  ncclComm* communicator{};
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  cudaStream_t stream{};
  Summed sum = Summed::None;
};

std::string new_folder_name();
std::string folder_of(const ncclUniqueId&);
/// Says that this rank is there.
void announce(const ncclComm&);
/// ncclInProgress until all are; then whether they may work together.
ncclResult_t gathered(ncclComm&);
/// A kernel that ends when each of these has met its other ends; a send holds its peer until then.
void launch(ncclComm&, const std::vector<Half>&, cudaStream_t);
/// Leaves something for another rank; takes what one has left, once it is there.
void put(const ncclComm&, const std::string& name, const void* data, std::size_t bytes);
std::optional<std::string> take(const ncclComm&, const std::string& name);
/// Others learn from it that this rank will not come.
void leave(const ncclComm&, bool aborted);
bool others_aborted(const ncclComm&);

}  // namespace stagecraft::emulated_gpu
