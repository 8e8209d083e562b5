// The search for V schedules: the few slopes that it tries for many ranks against all slopes.

#include <doctest/doctest.h>

#include "sim/core/random.hpp"
#include "sim/schedule/v_shape/adaptive_search.hpp"
#include "sim/schedule/v_shape/patterns.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::v_search_test {
namespace {

/// Random work: every pass of every stage takes between 1 and `spread` seconds.
VWork random_work(int ranks, int micro_batches, double hop, double spread, Rng& random) {
  const auto seconds = [&] { return random.uniform(1, spread); };
  VWork work{.costs = {}, .hop = hop, .micro_batches = micro_batches};
  for (int r = 0; r < ranks; ++r) {
    auto& chunks = work.costs.emplace_back();
    for (int c = 0; c < 2; ++c) {
      RankCost cost;
      cost.forward = seconds(), cost.input_gradient = seconds(), cost.weight_gradient = seconds();
      chunks.push_back(cost);
    }
  }
  return work;
}

}  // namespace

TEST_CASE("patterns exist exactly where has_patterns says so") {
  for (const int ranks : {1, 2, 3, 9, 16})
    for (const VPattern& top : v_tops())
      for (int first = 1; first <= kSteepest; ++first)
        for (int second = 1; second <= first; ++second)
          for (int turn = 1; turn <= ranks; ++turn) {
            const VSlope slope{top, first, second, turn};
            CHECK(has_patterns(slope, ranks) == patterns_of(slope, ranks).has_value());
          }
}

TEST_CASE("few slopes: rows fit, are not below the bound, and nearly as short as with all slopes") {
  // The search for many ranks, here on few, compared with the one that tries all slopes. It may find shorter rows: the
  // full search stops a family at the first turn that does not fit.
  Rng random(1, "v search");
  int points = 0, as_short = 0;
  double worst = 1;
  const std::vector<int> sizes = test::all_trials() ? std::vector{9, 12, 14} : std::vector{9};
  for (const int ranks : sizes)
    for (const double memory : {1.0, 0.8, 0.6, 0.5})
      for (const int micro_batches : {ranks / 2, ranks, 2 * ranks, 3 * ranks})
        for (const double hop : {0.0, 0.3}) {
          const VWork work = random_work(ranks, micro_batches, hop, 1 + 3.0 * (points % 4) / 3, random);
          const int max_peak = static_cast<int>(memory * 2 * ranks);
          CAPTURE(ranks);
          CAPTURE(micro_batches);
          CAPTURE(max_peak);
          const VRows few = shortest_rows(work, max_peak, 0), every_slope = shortest_rows(work, max_peak, ranks);
          REQUIRE(few.size() == every_slope.size());
          REQUIRE(!few.empty());
          for (const auto& row : few) CHECK(peak_of(row) <= max_peak);
          const double time = span_of(few, work), shortest = span_of(every_slope, work);
          CHECK(time >= VBound(work)(max_peak) * (1 - 1e-9));
          worst = std::max(worst, time / shortest);
          ++points, as_short += time <= shortest * (1 + 1e-9);
        }
  MESSAGE(as_short, " of ", points, " as short as of all slopes, the worst ", worst, " times as long");
  CHECK(worst <= 1.005);
  CHECK(as_short >= 0.9 * points);
}

TEST_CASE("few slopes: there are no rows below the least memory") {
  Rng random(1, "v search");
  const VWork work = random_work(40, 80, 0, 2, random);
  CHECK(shortest_rows(work, 20).empty());  // A third of 80 is the least of the V family (Qi et al. 2024, section 3.2).
  CHECK(shortest_rows(work, 30).size() == 40);
}

TEST_CASE("few slopes: 33 ranks of equal times reach the bound, as 32 do") {
  for (const int ranks : {32, 33}) {
    VWork work{.costs = {}, .hop = 0, .micro_batches = 2 * ranks};
    RankCost cost;
    cost.forward = cost.input_gradient = cost.weight_gradient = 1;
    work.costs.assign(static_cast<std::size_t>(ranks), {cost, cost});
    CHECK(span_of(shortest_rows(work, 2 * ranks), work) == 6 * 2 * ranks);  // No bubble: the work of a rank.
  }
}

}  // namespace stagecraft::v_search_test
