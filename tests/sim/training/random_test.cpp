#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

#include "sim/training/random.hpp"
#include "sim/training/rows.hpp"

namespace stagecraft::random_test {

TEST_CASE("shuffled is a permutation for every count") {
  for (std::int64_t count = 1; count <= 70; ++count) {
    const Shuffle shuffled(count, 9);
    std::set<std::int64_t> places;
    for (std::int64_t i = 0; i < count; ++i) places.insert(shuffled(i));
    CHECK(places.size() == static_cast<std::size_t>(count));
    CHECK((*places.begin() == 0 && *places.rbegin() == count - 1));
  }
}

// 120 permutations of 5, 200 of each on average, standard deviation 14.1.
TEST_CASE("all permutations are about equally likely") {
  std::vector<int> counts(3125, 0);
  for (std::uint64_t key = 0; key < 24000; ++key) {
    const Shuffle shuffled(5, key);
    std::size_t code = 0;
    for (std::int64_t i = 0; i < 5; ++i) code = code * 5 + static_cast<std::size_t>(shuffled(i));
    ++counts[code];
  }
  int seen = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++seen;
    CHECK(std::abs(count - 200) < 5 * 14.1);
  }
  CHECK(seen == 120);
}

// Of 100000 numbers: the mean has standard deviation 0.0032, the mean square 0.0045, the mean fourth power 0.031.
TEST_CASE("normal numbers have the moments of a normal distribution") {
  Rng rng(1, "normal");
  double mean = 0, square = 0, fourth = 0;
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    const double x = normal(rng);
    mean += x / count;
    square += x * x / count;
    fourth += x * x * x * x / count;
  }
  CHECK(std::abs(mean) < 5 * 0.0032);
  CHECK(std::abs(square - 1) < 5 * 0.0045);
  CHECK(std::abs(fourth - 3) < 5 * 0.031);
}

TEST_CASE("mini-batches may end inside an epoch") {
  const Epochs epochs(4, 10, 4);
  std::set<std::int64_t> first;
  for (int draw = 0; draw < 10; ++draw) first.insert(epochs.row(draw / 4, draw % 4));
  CHECK(first.size() == 10);
  std::set<std::int64_t> second;
  for (int draw = 10; draw < 20; ++draw) second.insert(epochs.row(draw / 4, draw % 4));
  CHECK(second.size() == 10);
}

}  // namespace stagecraft::random_test
