#pragma once

#include <compare>
#include <string>

namespace stagecraft {

/// A number with a dimension, in base units. Two dimensions never mix by accident.
template <class Tag>
struct Quantity {
  double value = 0;

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  constexpr Quantity& operator+=(Quantity q) { return value += q.value, *this; }
  constexpr Quantity& operator-=(Quantity q) { return value -= q.value, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return {a.value * k}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return {a.value * k}; }
  friend constexpr Quantity operator/(Quantity a, double k) { return {a.value / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
};

using Seconds = Quantity<struct SecondsTag>;
using Bytes = Quantity<struct BytesTag>;
using Flops = Quantity<struct FlopsTag>;  ///< An amount of work, not a rate.
using Bandwidth = Quantity<struct BytesPerSecondTag>;
using FlopRate = Quantity<struct FlopsPerSecondTag>;
using Watts = Quantity<struct WattsTag>;
using Joules = Quantity<struct JoulesTag>;

constexpr Seconds operator/(Bytes size, Bandwidth speed) { return {size.value / speed.value}; }
constexpr Seconds operator/(Flops work, FlopRate speed) { return {work.value / speed.value}; }
constexpr Joules operator*(Watts power, Seconds time) { return {power.value * time.value}; }

/// For people: "57.31 ms", "61.4 GiB", "25 GB/s". Four significant digits.
std::string to_text(Seconds);
std::string to_text(Bytes);
std::string to_text(Flops);
std::string to_text(Bandwidth);
std::string to_text(FlopRate);
std::string to_text(Watts);
std::string to_text(Joules);

}  // namespace stagecraft
