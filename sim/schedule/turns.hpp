#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stagecraft {

/// Devices that may try in this pass and in the next, smallest first.
class Turns {
 public:
  explicit Turns(std::size_t devices) : now_((devices + 63) / 64, 0), next_(now_) {
    for (std::size_t d = 0; d < devices; ++d) next_[d / 64] |= 1ULL << (d % 64);
  }
  void later(int d) { next_[static_cast<std::size_t>(d) / 64] |= 1ULL << (d % 64); }
  void wake(int d, int current) { (d > current ? now_ : next_)[static_cast<std::size_t>(d) / 64] |= 1ULL << (d % 64); }
  /// Whether any device tried.
  template <class Step>
  bool pass(Step&& step) {
    std::swap(now_, next_);
    bool any = false;
    for (std::size_t w = 0; w < now_.size(); ++w) {
      while (now_[w] != 0) {
        const int d = static_cast<int>(w * 64) + std::countr_zero(now_[w]);
        now_[w] &= now_[w] - 1;
        any = true;
        step(d);
      }
    }
    return any;
  }

 private:
  std::vector<std::uint64_t> now_, next_;
};

}  // namespace stagecraft
