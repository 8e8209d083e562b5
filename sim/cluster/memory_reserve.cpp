// The memory of a GPU that CUDA, NCCL and the allocator take, with the measurements behind it, and the line that tables
// print about it.

#include "sim/cluster/memory_reserve.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {

// Outside of PyTorch's allocator a process of Megatron-LM on a V100 had 1.2 GiB (31.74 GiB, of which 29.97 reserved by
// PyTorch and 0.56 free: Megatron-LM issue 525), and one on an H100 1.06 GB with one communicator (nccl issue 1685):
// CUDA context, kernels and NCCL's first communicator. Each further communicator takes 0.5 to 0.7 GB (nccl issue 964),
// and a pipeline with replicas has two. PyTorch had reserved 1.4 % (Megatron-LM issue 965), 3.1 % (threestudio
// discussion 403) and 3.6 % (Megatron-LM issue 525) of the memory without using it, 9 % with experts (Megatron-LM issue
// 756), and up to 43 % in the worst case of Huang et al., STAlloc (2025).
Bytes gpu_memory_reserve(Bytes memory) {
  constexpr double kContextAndNccl = 2 * 0x1p30, kFragmentation = 0.03, kMaxShare = 0.25;
  return Bytes{std::floor(std::min(kContextAndNccl + kFragmentation * memory.value, kMaxShare * memory.value))};
}

std::span<const double> allocator_ratios() {
  // 37 runs of BLOOM (nvidia-smi) and 3 of torchtitan (max_reserved) in scenarios/predictions.
  static constexpr double ratios[] = {1.034, 1.097, 1.113, 1.141, 1.165, 1.212, 1.214, 1.231, 1.233, 1.234,
                                      1.235, 1.236, 1.238, 1.243, 1.251, 1.251, 1.264, 1.266, 1.269, 1.279,
                                      1.28,  1.292, 1.293, 1.298, 1.298, 1.3,   1.305, 1.308, 1.317, 1.318,
                                      1.322, 1.326, 1.328, 1.333, 1.338, 1.339, 1.343, 1.36,  1.384, 1.392};
  return ratios;
}

Bytes equal_capacity(const Cluster& cluster) {
  Bytes capacity;
  for (const DeviceType& type : cluster.types) {
    if (&type != &*cluster.types.begin() && type.usable_memory() != capacity) return {};
    capacity = type.usable_memory();
  }
  return capacity;
}

std::string reserve_text(const Cluster& cluster) {
  std::map<std::pair<double, double>, std::vector<std::string>> types;  // By memory and reserve.
  for (const DeviceType& type : cluster.types)
    if (type.memory_reserve.value > 0) types[{type.memory.value, type.memory_reserve.value}].push_back(type.name);
  std::string text;
  for (const auto& [sizes, names] : types)
    text += fmt::format("{}{} of the {} of each {}", text.empty() ? "" : "; ", to_text(Bytes{sizes.second}),
                        to_text(Bytes{sizes.first}), join(names, " and "));
  return text;
}

std::string reserve_line(const Cluster& cluster) {
  const std::string text = reserve_text(cluster);
  return text.empty() ? text : fmt::format("memory: without the reserve, {}\n", text);
}

}  // namespace stagecraft
