#pragma once

#include <vector>

namespace stagecraft {

/// The greatest number of which all of these are multiples (Euclid), or 0 when it is too small to be reliable. Parts of
/// 0 do not count.
double common_measure(const std::vector<double>& parts);

/// Writes times as multiples of a unit: of their common measure, else of the longest. Multiples are rounded to 2^-40,
/// so sums of up to 2^13 units are exact, and sums of whole multiples always. Times that are equal but for rounding
/// compare equal: a rule then decides between them, and what is found from the multiples is the same when all times are
/// multiplied by one factor.
class CommonUnit {
 public:
  CommonUnit() = default;  ///< A second.
  /// Other times than these may be written in the unit as well.
  explicit CommonUnit(const std::vector<double>& times);

  double operator()(double time) const;
  /// Bytes in a unit of time, rounded to 40 bits.
  double rate(double bytes_per_second) const;
  double seconds(double multiple) const { return multiple * unit_; }

 private:
  double unit_ = 1;
};

}  // namespace stagecraft
