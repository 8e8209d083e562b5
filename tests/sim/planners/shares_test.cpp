// Stages that share samples, compared with a loop over all replicas.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "sim/plan/overlap.hpp"
#include "tests/support/devices.hpp"

namespace stagecraft::shares_test {
namespace {

Stage stage(int size, int replicas, Share share) {
  Stage stage;
  stage.micro_batch_size = size;
  stage.share = share;
  stage.place_on(test::device_range(0, replicas));
  return stage;
}

using Pieces = std::vector<std::tuple<int, int, int>>;  // Micro-batch, replica, samples.

Pieces pieces_of(const Stage& stage, int micro, int replica, const Stage& other) {
  Pieces pieces;
  for_each_overlap(stage, micro, replica, other,
                   [&](int m, int r, int samples) { pieces.emplace_back(m, r, samples); });
  return pieces;
}

/// Pieces of `other` that share samples with a replica, from a loop over all its micro-batches and replicas.
Pieces by_definition(const Stage& stage, int micro, int replica, const Stage& other) {
  Pieces pieces;
  const SampleRange range = samples_of(stage, micro, replica);
  for (int m = 0; m < 24 / other.micro_batch_size; ++m)
    for (int r = 0; r < static_cast<int>(other.leaders.size()); ++r) {
      const SampleRange theirs = samples_of(other, m, r);
      const auto common = std::min(range.high, theirs.high) - std::max(range.low, theirs.low);
      if (common > 0) pieces.emplace_back(m, r, static_cast<int>(common));
    }
  return pieces;
}

std::vector<Stage> all_stages() {
  std::vector<Stage> stages;
  for (const int size : {1, 2, 3, 4, 6, 12})
    for (int replicas = 1; replicas <= 5; ++replicas) {
      stages.push_back(stage(size, replicas, Share::MicroBatches));
      if (replicas <= size) stages.push_back(stage(size, replicas, Share::Samples));
    }
  return stages;
}

}  // namespace

TEST_CASE("pieces that share samples are all found, and no others") {
  const std::vector<Stage> stages = all_stages();
  for (const Stage& stage : stages)
    for (const Stage& other : stages)
      for (int micro = 0; micro < 24 / stage.micro_batch_size; ++micro)
        for (int replica = 0; replica < static_cast<int>(stage.leaders.size()); ++replica)
          CHECK(pieces_of(stage, micro, replica, other) == by_definition(stage, micro, replica, other));
}

TEST_CASE("a piece has its own number for each replica with a part in the micro-batch") {
  Plan plan;
  plan.stages = {stage(2, 2, Share::Samples), stage(2, 3, Share::MicroBatches)};
  plan.mini_batch = 12;
  const PieceIndex index(plan, 1);
  std::vector<bool> taken(index.size(), false);
  for (int s = 0; s < 2; ++s)
    for (int micro = 0; micro < 6; ++micro)
      for (int r = 0; r < static_cast<int>(plan.stage(StageId{s}).leaders.size()); ++r) {
        if (!takes_part(plan.stage(StageId{s}), micro, r)) continue;
        const std::size_t piece = index.index(StageId{s}, micro, r);
        REQUIRE(piece < taken.size());
        CHECK_FALSE(taken[piece]);
        taken[piece] = true;
      }
  CHECK(std::count(taken.begin(), taken.end(), true) == 6 * 2 + 6);
}

TEST_CASE("one micro-batch of many stages is in as many sets of a cache, whatever the number of micro-batches") {
  constexpr int kStages = 64, kNumbersOfLine = 16, kSets = 64;
  Plan plan;
  for (int s = 0; s < kStages; ++s) plan.stages.push_back(stage(1, 1, Share::Samples));
  plan.mini_batch = 1024;
  const PieceIndex index(plan, 1);
  std::set<std::size_t> sets;
  for (int s = 0; s < kStages; ++s) sets.insert(index.index(StageId{s}, 7, 0) / kNumbersOfLine % kSets);
  CHECK(sets.size() == kStages);
}

TEST_CASE("a device is found at any position, and a missing one is not") {
  for (const std::vector<int>& numbers :
       {std::vector<int>{}, {4}, {0, 1, 2, 3}, {1, 3, 5, 7}, {9, 6, 3, 0}, {0, 2, 3, 7}, {2, 2, 5}, {5, 1, 4, 2, 3}}) {
    std::vector<DeviceId> devices;
    for (const int number : numbers) devices.emplace_back(number);
    for (int d = -1; d < 12; ++d) {
      const auto at = std::find(numbers.begin(), numbers.end(), d);
      CHECK(place_of(devices, DeviceId{d}) == (at == numbers.end() ? -1 : static_cast<int>(at - numbers.begin())));
    }
  }
}

}  // namespace stagecraft::shares_test
