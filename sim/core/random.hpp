#pragma once

#include <cstdint>
#include <string_view>

namespace stagecraft {

/// A seeded stream of numbers for one purpose; two purposes never share a stream. (splitmix64)
class Rng {
 public:
  Rng(std::uint64_t seed, std::string_view purpose) : state_(seed) {
    for (char c : purpose) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL + 0x9e3779b97f4a7c15ULL;
  }
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  ///< In [0, 1).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int integer(int low, int high) {  ///< Both ends included.
    return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

}  // namespace stagecraft
