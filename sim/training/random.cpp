// Random numbers of training data: a stream for each place, normal numbers, and permutations without a table.

#include "sim/training/random.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace stagecraft {

Rng stream(std::uint64_t seed, std::string_view purpose, std::initializer_list<std::int64_t> place) {
  std::string name(purpose);
  for (const std::int64_t i : place) name += fmt::format(" {}", i);
  return Rng(seed, name);
}

double normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
  return radius * std::cos(2 * std::numbers::pi * rng.uniform());
}

// Swap-or-not: in each round partners key - x and x (mod count) change places or both stay (Hoang, Morris and Rogaway,
// CRYPTO 2012). Six rounds for each binary digit of `count` are theirs.
Shuffle::Shuffle(std::int64_t count, std::uint64_t key) : count_(count) {
  Rng rng(key, "shuffle");
  for (std::int64_t left = count; left > 0; left /= 2)
    for (int round = 0; round < 6; ++round) {
      const auto sum = static_cast<std::int64_t>(rng.next() % static_cast<std::uint64_t>(count));
      rounds_.push_back({sum, rng.next()});
    }
}

std::int64_t Shuffle::operator()(std::int64_t place) const {
  for (const Round& round : rounds_) {
    const std::int64_t partner = round.sum >= place ? round.sum - place : round.sum - place + count_;
    Rng coin(round.salt ^ static_cast<std::uint64_t>(std::max(place, partner)), {});
    if (coin.next() & 1) place = partner;
  }
  return place;
}

}  // namespace stagecraft
