#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/accelerator.hpp"

namespace stagecraft {

enum class KernelKind : std::uint8_t {
  Product,         ///< `batch` products of an m x k with a k x n matrix.
  MemoryBound,     ///< Reads and writes `bytes`: norms, sums, activations, casts.
  FusedAttention,  ///< m queries on n keys of k numbers, for `batch` heads of samples.
  GroupedProduct,  ///< `batch` experts, each of which multiplies its m rows of k numbers with its k x n matrix.
};

/// What a kernel, or a short run of kernels of one kind, computes on one device.
struct Kernel {
  KernelKind kind = KernelKind::MemoryBound;
  double m = 0, n = 0, k = 0, batch = 1;
  NumberFormat format = NumberFormat::Bf16;  ///< Format of the factors; fused attention always has 16 bits.
  double output_bytes = 2;  ///< Product: bytes of a number of the result; 4 where weight gradients are summed in fp32.
  Bytes bytes{};            ///< MemoryBound: read and written together.
  double count = 1;         ///< Number of kernels that the host launches for it.
  bool backward = false;    ///< FusedAttention: its backward, with 2.5 times the operations.
  double visible = 1;       ///< FusedAttention: share of the pairs of a query and a key that no mask hides.
  bool unaligned = false;   ///< Product of attention that is not fused, with a head width that is no multiple of 8.
  bool reorders_rows = false;   ///< MemoryBound: permutation of rows, slower than streaming.
  bool attention_core = false;  ///< Part of the core of attention, which selective recomputation repeats.

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// The kernels that selective recomputation repeats.
std::vector<Kernel> core_of(const std::vector<Kernel>&);

/// Floating-point operations; a multiplication with an addition counts as two. Memory-bound kernels count as zero.
Flops flops_of(const Kernel&);

/// The share of the peak that a product reaches: its device's share, times how full its waves of tiles are, times
/// k / (k + half depth). The fullest of the device's tiles counts.
double product_share(const Kernel&, const Accelerator&);

/// Time of a kernel on a device that does nothing else, without the time of its launch.
///
///   product          max(operations / (peak x product_share), bytes / streaming rate)
///   memory bound     bytes / streaming rate, or memory rate x permute_share where rows are reordered
///   fused attention  operations / (peak of 16 bits x share) + fixed
///   grouped product  operations / (peak x share x m / (m + half rows))
///
/// InputError when the device does not have the number format.
Seconds time_of(const Kernel&, const Accelerator&);

}  // namespace stagecraft
