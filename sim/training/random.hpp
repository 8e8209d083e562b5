#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "sim/core/random.hpp"

namespace stagecraft {

/// The stream of numbers for one purpose at one place, such as an iteration and a sample.
Rng stream(std::uint64_t seed, std::string_view purpose, std::initializer_list<std::int64_t> place);

/// Normally distributed, mean 0, variance 1 (Box and Muller, Ann. Math. Statist. 29, 1958).
double normal(Rng&);

/// Where `place` of `count` goes in the permutation of this key; no table is made.
std::int64_t shuffled(std::int64_t place, std::int64_t count, std::uint64_t key);

}  // namespace stagecraft
