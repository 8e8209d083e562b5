#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// The format of the numbers that a matrix product reads. Sums are in fp32 or wider, and results have 16 bits at least.
enum class NumberFormat : std::uint8_t { Fp32, Tf32, Fp16, Bf16, Fp8, MxFp8, NvFp4 };

inline constexpr NumberFormat kNumberFormats[] = {NumberFormat::Fp32, NumberFormat::Tf32, NumberFormat::Fp16,
                                                  NumberFormat::Bf16, NumberFormat::Fp8,  NumberFormat::MxFp8,
                                                  NumberFormat::NvFp4};
inline constexpr std::size_t kNumberFormatCount = std::size(kNumberFormats);

/// "bf16", as scenarios and files write it.
constexpr std::string_view name(NumberFormat format) {
  constexpr std::string_view kFormatNames[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4"};
  return kFormatNames[static_cast<std::size_t>(format)];
}

constexpr std::optional<NumberFormat> parse_number_format(std::string_view word) {
  for (const NumberFormat format : kNumberFormats)
    if (name(format) == word) return format;
  return std::nullopt;
}

inline std::vector<std::string> number_format_names() {
  std::vector<std::string> names;
  for (const NumberFormat format : kNumberFormats) names.emplace_back(name(format));
  return names;
}

/// Bytes of one number, without the scales of a block of numbers. TF32 rounds inside the product: memory has 4 bytes.
constexpr double bytes_of(NumberFormat format) {
  constexpr double kBytes[] = {4, 4, 2, 2, 1, 1, 0.5};
  return kBytes[static_cast<std::size_t>(format)];
}

/// Bytes of one number with the scale of its block: a byte for 32 numbers of mxfp8, and for 16 of nvfp4.
constexpr double scaled_bytes_of(NumberFormat format) {
  constexpr double kScales[] = {0, 0, 0, 0, 0, 1.0 / 32, 1.0 / 16};
  return bytes_of(format) + kScales[static_cast<std::size_t>(format)];
}

/// Whether numbers of 16 bits have to be cast to the format before a product.
constexpr bool is_narrow(NumberFormat format) { return format >= NumberFormat::Fp8; }

}  // namespace stagecraft
