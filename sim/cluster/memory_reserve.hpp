#pragma once

#include <span>
#include <string>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// The part of a GPU's memory that the CUDA context, NCCL's buffers and the allocator's fragmentation take in training:
/// 2 GiB and 3 % of the memory, at most a quarter of it.
Bytes gpu_memory_reserve(Bytes memory);

/// What PyTorch's allocator kept over what is simulated to be in use, in published runs, ascending. Memory of a process
/// counts without NCCL's communicators. The allocator returns some of it to the device before it gives up.
std::span<const double> allocator_ratios();

/// Memory of each device without its reserve; zero where it is not known, or types of devices differ in it.
Bytes equal_capacity(const Cluster&);

/// "4.4 GiB of the 80 GiB of each a100-80 and h100-sxm", the reserves of all types; empty where nothing is reserved.
std::string reserve_text(const Cluster&);
/// A line about it for below a table of memory.
std::string reserve_line(const Cluster&);

}  // namespace stagecraft
