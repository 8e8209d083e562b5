#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "sim/core/random.hpp"

namespace stagecraft {

/// The stream of numbers for one purpose at one place, such as an iteration and a sample.
Rng stream(std::uint64_t seed, std::string_view purpose, std::initializer_list<std::int64_t> place);

/// Normally distributed, mean 0, variance 1 (Box and Muller, Ann. Math. Statist. 29, 1958).
double normal(Rng&);

/// The permutation of `count` places that a key gives; no table of them is made.
class Shuffle {
 public:
  Shuffle(std::int64_t count, std::uint64_t key);
  std::int64_t operator()(std::int64_t place) const;

 private:
  struct Round {
    std::int64_t sum = 0;  ///< A place and its partner, added modulo the count.
    std::uint64_t salt = 0;
  };
  std::int64_t count_;
  std::vector<Round> rounds_;
};

}  // namespace stagecraft
