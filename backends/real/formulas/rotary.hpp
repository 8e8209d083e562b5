#pragma once

#include <cmath>
#include <cstdint>

#include "backends/real/formulas/elementary.hpp"

namespace stagecraft::real {

/// Cosine and sine of the angle by which pair `pair` of a head is turned in row `row` of a sample:
/// row * 10000^(-2 pair / rotary) (Su et al., 2021, section 3.2.2). Numbers i and i + rotary/2 of what is turned in a
/// head are pair i, as in the weights of Llama for transformers.
template <class T>
struct Turn {
  T cosine, sine;
  STAGECRAFT_PORTABLE Turn(int rotary, std::int64_t row, std::int64_t pair) {
    constexpr double kBase = 10000;
    const double angle = static_cast<double>(row) * std::pow(kBase, -2.0 * static_cast<double>(pair) / rotary);
    cosine = static_cast<T>(std::cos(angle)), sine = static_cast<T>(std::sin(angle));
  }
  /// The turn back: its matrix is the transposed one.
  STAGECRAFT_PORTABLE Turn back() const {
    Turn turn = *this;
    turn.sine = -sine;
    return turn;
  }
  STAGECRAFT_PORTABLE T first(T x, T y) const { return x * cosine - y * sine; }
  STAGECRAFT_PORTABLE T second(T x, T y) const { return y * cosine + x * sine; }
};

}  // namespace stagecraft::real
