// The formulas of PipeDream-2BW, and even cuts compared with all cuts.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/planners/chain_partition/two_bw.hpp"

namespace stagecraft::two_bw_test {

TEST_CASE("2bw: equal stages follow the paper's formulas") {
  // Appendix A.1.2 with |W| = 24, A = 60, A_in = 3 in 4 stages: 2|W|/d + A + d A_in, and A/d when it recomputes.
  chain_partition::TwoBwPipeline pipeline;
  pipeline.stages.assign(4, {2, 3, 3, {.weights = {6}, .stash = {15}}});
  pipeline.width = 2, pipeline.micro_batches = 8;
  pipeline.depth_bandwidth = 12, pipeline.width_bandwidth = 0.25;
  CHECK(chain_partition::memory_of(pipeline) == 2 * 24 / 4.0 + 60 + 4 * 3);
  CHECK(chain_partition::period_of(pipeline) == 2 + 2 * (3 + 3) / 12.0);
  pipeline.recompute = true;
  CHECK(chain_partition::memory_of(pipeline) == 2 * 24 / 4.0 + 60 / 4.0 + 4 * 3);
  CHECK(chain_partition::period_of(pipeline) == doctest::Approx(4.0 / 3 * 2 + 1).epsilon(1e-15));
  pipeline.width_bandwidth = 1.0 / 8;  // 2 (w-1)/w 6 bytes take 48 seconds, shared by 8 micro-batches.
  CHECK(chain_partition::period_of(pipeline) == 6);
}

TEST_CASE("2bw: an even cut has the smallest maximum of all cuts") {
  Rng rng(14, "even");
  for (int round = 0; round < 300; ++round) {
    std::vector<double> amounts;
    for (int l = rng.integer(1, 9); l > 0; --l) amounts.push_back(rng.integer(0, 9));
    const int count = static_cast<int>(amounts.size()), parts = rng.integer(1, count);
    const auto largest = [&](std::vector<int> starts) {
      starts.push_back(count);
      double sum = 0;
      for (std::size_t p = 0; p + 1 < starts.size(); ++p)
        sum = std::max(sum, std::accumulate(amounts.begin() + starts[p], amounts.begin() + starts[p + 1], 0.0));
      return sum;
    };
    double best = kInfinity;
    std::vector<int> starts{0};
    const std::function<void()> visit = [&] {
      if (static_cast<int>(starts.size()) == parts) return void(best = std::min(best, largest(starts)));
      for (int next = starts.back() + 1; next < count; ++next) starts.push_back(next), visit(), starts.pop_back();
    };
    visit();
    const std::vector<int> cut = chain_partition::cut_evenly(amounts, parts);
    CHECK(static_cast<int>(cut.size()) == parts);
    CHECK(std::adjacent_find(cut.begin(), cut.end(), std::greater_equal<>()) == cut.end());
    CHECK(largest(cut) == best);
  }
}

}  // namespace stagecraft::two_bw_test
