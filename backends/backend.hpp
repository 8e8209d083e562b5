#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/core/catalog.hpp"
#include "sim/cost/profile.hpp"
#include "sim/program/timeline.hpp"
#include "sim/program/workload.hpp"

namespace stagecraft {

/// Operands of matrix products of 32-bit numbers on GPUs may be rounded first.
enum class GpuPrecision : std::uint8_t { Exact, Tf32, Bf16 };
enum class GpuMessages : std::uint8_t { Copy, Kernel, Nccl };
constexpr const char* to_text(GpuMessages messages) {
  return messages == GpuMessages::Copy ? "copy" : messages == GpuMessages::Kernel ? "kernel" : "nccl";
}
/// How gradients of replicas are summed on GPUs: in the order of the replicas, or by an all-reduce in NCCL's own order.
enum class GpuSums : std::uint8_t { Ordered, Collective };
/// Which events on GPUs are read: around each instruction, or after each iteration.
enum class GpuTiming : std::uint8_t { Events, Off };

/// Choices of runs on GPUs.
struct GpuOptions {
  GpuPrecision precision = GpuPrecision::Exact;
  GpuMessages messages = GpuMessages::Copy;
  GpuSums sums = GpuSums::Ordered;
  GpuTiming timing = GpuTiming::Events;
  bool graph = false;         ///< Iterations that repeat are launched as a whole.
  int nccl_ctas = 0;          ///< Most thread blocks of an NCCL kernel; 0: 4 within a GPU, 16 between GPUs.
  std::string products = {};  ///< File of the algorithms of matrix products; empty: none.
};

struct RunOptions {
  std::uint64_t seed = 1;
  Seconds timeout{0};       ///< Wall time; in a real run, without any progress. Zero: the backend's own limit, or none.
  bool one_thread = false;  ///< In a real run: all devices on one thread, in the order of the program.
  bool emulated = false;    ///< In a real run: sleep for the time of the cost table instead; messages are real.
  double time_dilation = 1;  ///< In an emulated run: sleep that many times as long.
  GpuOptions gpu = {};
};

/// What is to be measured for a profile.
struct ProfileRequest {
  const Workload& workload;  ///< Unfolded, where groups of devices divide its stages.
  std::vector<int> samples;  ///< Micro-batch sizes.
  int threads = 1;           ///< Devices that are busy at the same time.
  double seconds = 1;        ///< Measuring time for each micro-batch size; a few runs are made in any case.
  GpuOptions gpu = {};
};

/// One way to execute a Program: one directory in backends/. The program has passed check_program(). Backends that
/// really compute also need its workload.
struct BackendDef {
  std::string_view name, summary, source;
  Clock clock = Clock::Simulated;
  std::string (*version)();  ///< The library's version; empty when the backend uses no library.
  std::string (*why_not)();  ///< Empty when it can run here; else one sentence.
  Timeline (*run)(const Program&, const Cluster&, const RunOptions&);
  Profile (*profile)(const ProfileRequest&) = nullptr;  ///< Null for backends that only simulate.
  std::string (*facts)() = nullptr;                     ///< Lines for `doctor` about the machine that it runs on.
  /// The version of a library that the first run loads, as the build knows it: version() and why_not() load it too.
  std::string_view built_with = {};
};

namespace backends {
Catalog<BackendDef> catalog();
}

}  // namespace stagecraft
