#pragma once

#include <bit>
#include <cstdint>

#include "backends/real/formulas/elementary.hpp"

namespace stagecraft::real {

/// The upper half of a float: 8 significant bits, and the exponents of a float.
struct Bfloat16 {
  std::uint16_t bits = 0;

  Bfloat16() = default;
  /// To the nearest, ties to even, as cvt.rn.bf16 of PTX does. What is not a number stays so.
  STAGECRAFT_PORTABLE explicit Bfloat16(float x) {
    const auto word = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t half = 0x7fffU + (word >> 16U & 1U);
    bits = static_cast<std::uint16_t>(x == x ? (word + half) >> 16U : 0x7fffU);
  }
  STAGECRAFT_PORTABLE operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }
};
static_assert(sizeof(Bfloat16) == 2);

/// The type in which numbers of a type are computed and summed.
template <class T>
struct WideType {
  using type = T;
};
template <>
struct WideType<Bfloat16> {
  using type = float;
};
template <class T>
using Wide = typename WideType<T>::type;

}  // namespace stagecraft::real
