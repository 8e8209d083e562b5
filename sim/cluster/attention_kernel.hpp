#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace stagecraft
