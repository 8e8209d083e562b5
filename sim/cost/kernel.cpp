// The time of a kernel on a device: products by waves of tiles, fused attention, products of experts, and kernels that
// are bound by memory.

#include "sim/cost/kernel.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

constexpr double kBackwardOfFused = 2.5;  // Five products instead of two (Dao, FlashAttention-2, 2023).

const FormatFacts& facts_of(NumberFormat format, const Accelerator& device) {
  if (!device.has(format))
    throw InputError(fmt::format("{} has no figures for products in {}", device.name, name(format)),
                     "choose a number format of its data sheet");
  return device.formats[format];
}

/// How full the waves are: the results over what all multiprocessors could hold in these waves.
double fill(const Kernel& p, const Tile& tile, int multiprocessors) {
  const double tiles = std::ceil(p.m / tile.rows) * std::ceil(p.n / tile.columns) * p.batch;
  const double waves = std::ceil(tiles / multiprocessors);
  return p.batch * p.m * p.n / (waves * multiprocessors * tile.rows * tile.columns);
}

Seconds product_time(const Kernel& p, const Accelerator& device) {
  const FormatFacts& facts = facts_of(p.format, device);
  const double in = bytes_of(p.format);
  const Bytes moved{p.batch * (in * (p.m * p.k + p.k * p.n) + p.output_bytes * p.m * p.n)};
  const Seconds arithmetic = flops_of(p) / (product_share(p, device) * facts.peak);
  return std::max((p.unaligned ? device.attention_penalty : 1) * arithmetic, moved / device.streaming_rate());
}

Seconds attention_time(const Kernel& a, const Accelerator& device) {
  const AttentionFacts& facts = a.backward ? device.attention_backward : device.attention_forward;
  const FormatFacts& wide = facts_of(device.wide_format(), device);
  return flops_of(a) / (facts.share * wide.peak) + facts.fixed;
}

Seconds grouped_time(const Kernel& g, const Accelerator& device) {
  const double share = device.grouped.share * g.m / (g.m + device.grouped.half_rows);
  return flops_of(g) / (share * facts_of(g.format, device).peak);
}

}  // namespace

std::vector<Kernel> core_of(const std::vector<Kernel>& kernels) {
  std::vector<Kernel> core;
  std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(core),
               [](const Kernel& kernel) { return kernel.attention_core; });
  return core;
}

Flops flops_of(const Kernel& kernel) {
  const double products = kernel.batch * kernel.m * kernel.n * kernel.k;
  switch (kernel.kind) {
    case KernelKind::MemoryBound:
      return {};
    case KernelKind::FusedAttention:
      return Flops{4 * products * kernel.visible * (kernel.backward ? kBackwardOfFused : 1)};
    case KernelKind::Product:
    case KernelKind::GroupedProduct:
      return Flops{2 * products};
  }
  return {};
}

double product_share(const Kernel& product, const Accelerator& device) {
  const FormatFacts& facts = facts_of(product.format, device);
  if (device.multiprocessors == 0) return facts.share;
  double fullest = 0;
  for (const Tile& tile : device.tiles) fullest = std::max(fullest, fill(product, tile, device.multiprocessors));
  return facts.share * fullest * product.k / (product.k + facts.half_depth);
}

Seconds time_of(const Kernel& kernel, const Accelerator& device) {
  switch (kernel.kind) {
    case KernelKind::Product:
      if (kernel.m <= 0 || kernel.n <= 0 || kernel.k <= 0) return {};
      return product_time(kernel, device);
    case KernelKind::FusedAttention:
      return attention_time(kernel, device);
    case KernelKind::GroupedProduct:
      return kernel.m <= 0 ? Seconds{} : grouped_time(kernel, device);
    case KernelKind::MemoryBound:
      return kernel.bytes /
             (kernel.reorders_rows ? device.permute_share * device.type.memory_bandwidth : device.streaming_rate());
  }
  return {};
}

}  // namespace stagecraft
