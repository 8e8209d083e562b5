#pragma once

#include <array>
#include <cstddef>

namespace stagecraft {

/// An array with one element for each of the first N values of an enumeration.
template <class Enum, class T, std::size_t N>
struct EnumArray : std::array<T, N> {
  using std::array<T, N>::operator[];
  constexpr T& operator[](Enum value) { return std::array<T, N>::operator[](static_cast<std::size_t>(value)); }
  constexpr const T& operator[](Enum value) const {
    return std::array<T, N>::operator[](static_cast<std::size_t>(value));
  }
};

}  // namespace stagecraft
