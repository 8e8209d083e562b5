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
  explicit Turns(std::size_t devices) : now_(devices), next_(devices) {
    for (std::size_t d = 0; d < devices; ++d) next_.add(d);
  }
  void later(int d) { next_.add(static_cast<std::size_t>(d)); }
  void wake(int d, int current) { (d > current ? now_ : next_).add(static_cast<std::size_t>(d)); }
  /// Whether any device tried.
  template <class Step>
  bool pass(Step&& step) {
    std::swap(now_, next_);
    bool any = false;
    for (std::size_t b = 0; b < now_.blocks.size(); ++b) {
      for (std::uint64_t& block = now_.blocks[b]; block != 0;) {
        const auto w = b * 64 + static_cast<std::size_t>(std::countr_zero(block));
        for (std::uint64_t& word = now_.words[w]; word != 0;) {
          const int d = static_cast<int>(w * 64) + std::countr_zero(word);
          word &= word - 1;
          any = true;
          step(d);
        }
        block &= ~(1ULL << (w % 64));
      }
    }
    return any;
  }

 private:
  /// A bit for each device, and one for each word of them that has any: a pass of few devices looks at few words.
  struct Members {
    std::vector<std::uint64_t> words, blocks;
    explicit Members(std::size_t devices) : words(devices / 64 + 1, 0), blocks(words.size() / 64 + 1, 0) {}
    void add(std::size_t d) {
      words[d / 64] |= 1ULL << (d % 64);
      blocks[d / 4096] |= 1ULL << (d / 64 % 64);
    }
  };

  Members now_, next_;
};

}  // namespace stagecraft
