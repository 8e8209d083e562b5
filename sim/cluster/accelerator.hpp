#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/collective_curve.hpp"
#include "sim/config/fields.hpp"
#include "sim/core/enum_array.hpp"
#include "sim/core/number_format.hpp"

namespace stagecraft {

/// An implementation of fused attention. Devices have a share of the peak for each; software names the one that runs.
enum class AttentionKernel : std::uint8_t { Flash1Triton, Flash2, Flash3, CuDnn };

inline constexpr AttentionKernel kAttentionKernels[] = {AttentionKernel::Flash1Triton, AttentionKernel::Flash2,
                                                        AttentionKernel::Flash3, AttentionKernel::CuDnn};
inline constexpr std::size_t kAttentionKernelCount = std::size(kAttentionKernels);

/// "fa2", as scenarios and files write it.
constexpr std::string_view name(AttentionKernel kernel) {
  constexpr std::string_view kNames[] = {"fa1_triton", "fa2", "fa3", "cudnn"};
  return kNames[static_cast<std::size_t>(kernel)];
}

/// "FlashAttention 2".
constexpr std::string_view title(AttentionKernel kernel) {
  constexpr std::string_view kTitles[] = {"FlashAttention 1 in Triton", "FlashAttention 2", "FlashAttention 3",
                                          "attention of cuDNN"};
  return kTitles[static_cast<std::size_t>(kernel)];
}

constexpr std::optional<AttentionKernel> parse_attention_kernel(std::string_view word) {
  for (const AttentionKernel kernel : kAttentionKernels)
    if (name(kernel) == word) return kernel;
  return std::nullopt;
}

/// The name of attention in several kernels that keep the scores, next to the names of fused kernels.
inline constexpr std::string_view kEagerAttention = "eager";

/// All words for attention: eager, and each fused kernel.
inline std::vector<std::string> attention_words() {
  std::vector<std::string> words{std::string(kEagerAttention)};
  for (const AttentionKernel kernel : kAttentionKernels) words.emplace_back(name(kernel));
  return words;
}

/// Matrix products in one number format.
struct FormatFacts {
  FlopRate peak{};        ///< Dense rate of the data sheet; zero where the device does not have the format.
  double share = 0;       ///< Share of `peak` that a product of many full waves and of great depth reaches.
  double half_depth = 0;  ///< Depth at which a product reaches half of `share`: what filling and draining a tile costs.
  bool calibrated = false;  ///< Whether `share` comes from measurements of this device type in this format.
  std::string origin = {};  ///< Where `share` comes from.
};

/// Fused attention in one direction.
struct AttentionFacts {
  double share = 0;  ///< Share of the peak of 16-bit products, counting the work that no mask hides.
  Seconds fixed{};   ///< Time of one call without work.
};

/// A kernel of fused attention on a device type.
struct AttentionKernelFacts {
  AttentionFacts forward, backward;  ///< Their shares are zero where nothing is known of the kernel on this device.
  bool derived = false;              ///< From another kernel or device, not from a measurement of this one here.
};

/// The processor that launches kernels.
enum class Host : std::uint8_t { X86, Grace };
inline constexpr std::size_t kHosts = 2;
constexpr std::string_view name(Host host) { return host == Host::Grace ? "grace" : "x86"; }

/// Products of experts, all in one kernel.
struct GroupedFacts {
  double share = 0;      ///< Share of the peak with many rows for each expert.
  double half_rows = 0;  ///< Rows of an expert at which a product reaches half of `share`.
};

/// The shape of the result of a product that one multiprocessor computes at a time.
struct Tile {
  int rows = 0, columns = 0;
};

/// A device type with all that is known of it. Files of topologies/devices hold the figures with their sources. A type
/// of which no run was measured has the shares of a relative. A type without number formats has no figures of kernels.
struct Accelerator {
  std::string name, title, source;
  std::string like = {};    ///< The relative whose figures it has where its own file says nothing.
  bool calibrated = false;  ///< Whether a share was fitted to, or measured on, runs of this device type.
  DeviceType type;          ///< What a cluster has of it: memory, powers, and a roofline for layers as a whole.
  EnumArray<NumberFormat, FormatFacts, kNumberFormatCount> formats;
  double memory_share = 0;   ///< Share of the bandwidth of its memory that streaming kernels reach.
  double permute_share = 0;  ///< The share that kernels reach which reorder rows.
  int multiprocessors = 0;   ///< Zero: products do not run in waves.
  std::vector<Tile> tiles;
  EnumArray<AttentionKernel, AttentionKernelFacts, kAttentionKernelCount> attention;
  AttentionFacts attention_forward,
      attention_backward;        ///< What the kernel of the software reaches; see figures_for().
  double attention_penalty = 1;  ///< Factor on the products of attention that is not fused, where the width of a head
                                 ///< is no multiple of 8.
  GroupedFacts grouped;
  Host host = Host::X86;
  Seconds launch{};         ///< Time of the host for one kernel; see figures_for().
  bool has_launch = false;  ///< Whether `launch` was given for the device, whatever its host and the framework.
  CollectiveConstants collectives;
  std::vector<CollectiveCurve> curves;  ///< Measured collectives that the cluster names; they come before constants.
  bool collectives_by_links = false;    ///< Nothing was measured: a collective takes what its phases take on the links.
  int domain = 1;                       ///< Devices that NVLink, or its like, connects at full rate.

  /// Whether its file says what a kernel of a given shape costs.
  bool has_kernels() const { return has(wide_format()); }
  bool has(NumberFormat format) const { return formats[format].peak.value > 0; }
  /// The format of products that stay in 16 bits: bf16, or fp16 on devices without it.
  NumberFormat wide_format() const { return has(NumberFormat::Bf16) ? NumberFormat::Bf16 : NumberFormat::Fp16; }
  /// Bytes a second of streaming kernels.
  Bandwidth streaming_rate() const { return memory_share * type.memory_bandwidth; }
};

/// The field table of a file of topologies/devices.
const config::MapSpec& accelerator_fields();

/// Reads a checked map of those fields. `relative` gives what it leaves out, except formats, the peak of the roofline
/// and the reserve; null where it has no `like`.
///
/// A format with a peak alone has the share of 16-bit products, and their half depth in proportion to the peaks,
/// because filling a tile takes the same time; it does not count as calibrated. InputError when a figure is missing
/// that neither the map nor its relative has.
Accelerator read_accelerator(const config::Value& checked, const Accelerator* relative);

/// Reads a file and its relatives, which are next to it or in the library. InputError with all problems, also when
/// relatives form a circle.
Accelerator load_accelerator(const std::string& file);

}  // namespace stagecraft
