#pragma once

#include <cstdint>

#include "sim/plan/edgepipe/problem.hpp"

namespace stagecraft::edgepipe {

/// How many devices of each kind are in use, as one number: digits of which kind k has count + 1, the first the lowest.
/// One device more is a larger number, so that counting up meets every chain before those that it begins.
class Counts {
 public:
  explicit Counts(const Problem& p) {
    for (const Machines& m : p.machines) {
      strides_.push_back(total_);
      sizes_.push_back(m.count + 1);
      total_ *= m.count + 1;
    }
  }
  /// As a double: more than fit in memory are still a number to tell.
  static double total_of(const Problem& p) {
    double product = 1;
    for (const Machines& m : p.machines) product *= m.count + 1.0;
    return product;
  }

  std::int64_t total() const { return total_; }
  std::int64_t stride(int machines) const { return strides_[machines]; }
  int used(std::int64_t counts, int machines) const {
    const auto m = static_cast<std::size_t>(machines);
    return static_cast<int>(counts / strides_[m] % sizes_[m]);
  }
  bool free(std::int64_t counts, int machines) const { return used(counts, machines) + 1 < sizes_[machines]; }

 private:
  std::vector<std::int64_t> strides_, sizes_;
  std::int64_t total_ = 1;
};

}  // namespace stagecraft::edgepipe
