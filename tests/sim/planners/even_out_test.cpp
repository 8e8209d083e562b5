#include "sim/planners/shared/even_out.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/core/random.hpp"
#include "sim/plan/placement.hpp"

namespace stagecraft::even_out_test {
namespace {

/// Layers on ranks of different speeds.
struct Shop {
  std::vector<LayerSums> sums;  ///< Per rank.
  std::vector<std::vector<StageShare>> ranks;
  int stages = 0, layers = 0;
};

Shop shop_of(Placement placement, int ranks, int chunks, const std::vector<double>& layers,
             const std::vector<double>& speeds) {
  Shop shop{{},
            std::vector<std::vector<StageShare>>(static_cast<std::size_t>(ranks)),
            ranks * chunks,
            static_cast<int>(layers.size())};
  for (const double speed : speeds) {
    LayerSums& sums = shop.sums.emplace_back(LayerSums{0});
    for (const double layer : layers) sums.push_back(sums.back() + layer / speed);
  }
  for (int s = 0; s < shop.stages; ++s) {
    const auto rank = static_cast<std::size_t>(rank_of(placement, s, ranks));
    shop.ranks[rank].push_back({s, &shop.sums[rank], 1});
  }
  return shop;
}

std::vector<double> sorted_loads(const Shop& shop, const std::vector<int>& bounds) {
  std::vector<double> loads;
  for (const auto& rank : shop.ranks) loads.push_back(load_of(rank, bounds));
  std::sort(loads.begin(), loads.end(), std::greater<>());
  return loads;
}

/// Times as exact multiples of 1/6: whole times divided by speeds of 1, 2 and 3.
std::vector<double> sixths(std::vector<double> loads) {
  for (double& load : loads) load = std::round(6 * load);
  return loads;
}

/// Time of the busiest rank in the best of all divisions.
double best_of_all(const Shop& shop) {
  double best = 1e300;
  std::vector<int> bounds(static_cast<std::size_t>(shop.stages) + 1, 0);
  bounds.back() = shop.layers;
  const std::function<void(int)> place = [&](int s) {
    if (s == shop.stages) return void(best = std::min(best, sorted_loads(shop, bounds).front()));
    const auto at = static_cast<std::size_t>(s);
    for (bounds[at] = bounds[at - 1] + 1; bounds[at] <= shop.layers - (shop.stages - s); ++bounds[at]) place(s + 1);
  };
  place(1);
  return best;
}

std::vector<int> evenly(int stages, int layers) {
  std::vector<int> bounds;
  for (int s = 0; s <= stages; ++s) bounds.push_back(s * layers / stages);
  return bounds;
}

}  // namespace

TEST_CASE("a boundary moves where the busiest rank gains, then where the next one does") {
  // Two ranks round and round, four stages. Ranks start with 1 + 8 and 1 + 1.
  const Shop shop = shop_of(Placement::Loop, 2, 2, {1, 1, 4, 4, 1}, {1, 1});
  std::vector<int> bounds{0, 1, 2, 4, 5};
  REQUIRE(sorted_loads(shop, bounds) == std::vector<double>{9, 2});
  even_out(bounds, shop.ranks);
  CHECK(sorted_loads(shop, bounds) == std::vector<double>{6, 5});
  CHECK(sorted_loads(shop, bounds).front() == best_of_all(shop));
}

TEST_CASE("equal stages stay as they are, also if their sums differ in the last digits") {
  for (const double time : {0.1, 0.3, 1.0 / 3, 0.7, 1.1, 2.3, 1e-9 / 7}) {
    CAPTURE(time);
    const Shop shop = shop_of(Placement::Loop, 8, 3, std::vector<double>(96, time), std::vector<double>(8, 1));
    std::vector<int> bounds = evenly(24, 96);
    even_out(bounds, shop.ranks);
    CHECK(bounds == evenly(24, 96));
  }
}

TEST_CASE("a share of the micro-batches is a share of the load") {
  const LayerSums sums{0, 2, 5, 6};
  CHECK(load_of({{0, &sums, 0.25}, {1, &sums, 0.75}}, {0, 1, 3}) == 0.25 * 2 + 0.75 * 4);
}

TEST_CASE("ranks of different speeds are never worse afterwards, have no empty stage, and are mostly optimal") {
  Rng rng(21, "even out");
  int best = 0, gained = 0;
  double worst = 1;
  constexpr int kCases = 600;
  for (int n = 0; n < kCases; ++n) {
    const Placement placement = n % 2 == 0 ? Placement::Loop : Placement::V;
    const int ranks = rng.integer(2, 3), chunks = placement == Placement::V ? 2 : rng.integer(2, 3);
    const int count = rng.integer(ranks * chunks, ranks * chunks + 8);
    std::vector<double> layers, speeds;
    for (int l = 0; l < count; ++l) layers.push_back(rng.integer(1, 20));
    for (int r = 0; r < ranks; ++r) speeds.push_back(rng.integer(1, 3));
    const Shop shop = shop_of(placement, ranks, chunks, layers, speeds);
    std::vector<int> bounds = evenly(shop.stages, count);
    const std::vector<double> before = sorted_loads(shop, bounds);
    even_out(bounds, shop.ranks);
    const std::vector<double> after = sorted_loads(shop, bounds);
    CHECK(sixths(after) <= sixths(before));
    CHECK(std::is_sorted(bounds.begin(), bounds.end(), std::less_equal<>()));
    CHECK(bounds.front() == 0);
    CHECK(bounds.back() == count);
    const double optimum = best_of_all(shop);
    gained += after.front() < before.front();
    best += after.front() <= optimum * (1 + 1e-12);
    worst = std::max(worst, after.front() / optimum);
  }
  MESSAGE("the best of all in " << best << " of " << kCases << ", the worst " << worst << " times it; shorter in "
                                << gained);
  CHECK(gained >= kCases / 2);
  CHECK(best >= kCases / 2);
}

TEST_CASE("the lower bound of the busiest device is never above an exhaustive search") {
  const LayerSums even{0, 3, 6}, twice{0, 1.5, 3};
  CHECK(least_load({{{0, &even, 1}}, {{1, &even, 1}}}) == doctest::Approx(3));
  CHECK(least_load({{{0, &even, 1}}, {{1, &twice, 1}}}) == doctest::Approx(2));  // A third of the work, and two thirds.
  CHECK(least_load({{{0, &even, 0.5}, {1, &even, 0.5}}, {{0, &even, 0.5}, {1, &even, 0.5}}}) == doctest::Approx(3));
  Rng rng(23, "least load");
  for (int trial = 0; trial < 300; ++trial) {
    const int layers = rng.integer(2, 5);
    LayerSums a{0}, b{0};  // Each device may be good at other layers.
    for (int l = 0; l < layers; ++l) {
      a.push_back(a.back() + rng.integer(1, 9));
      b.push_back(b.back() + rng.integer(1, 9));
    }
    double best = a.back() + b.back();
    for (int of_a = 0; of_a < 1 << layers; ++of_a) {
      double on_a = 0, on_b = 0;
      for (int l = 0; l < layers; ++l) {
        const auto i = static_cast<std::size_t>(l);
        (of_a >> l & 1 ? on_a : on_b) += of_a >> l & 1 ? a[i + 1] - a[i] : b[i + 1] - b[i];
      }
      best = std::min(best, std::max(on_a, on_b));
    }
    CHECK(least_load({{{0, &a, 1}}, {{1, &b, 1}}}) <= best * (1 + 1e-12));
  }
}

}  // namespace stagecraft::even_out_test
