// Packing: figures of loads of language models, and what every rule keeps.

#include "sim/plan/packing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/support/drawn_lengths.hpp"

namespace stagecraft::packing_test {
namespace {

constexpr int kRoom = 8192;

double largest_over_mean(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return *std::max_element(values.begin(), values.end()) * static_cast<double>(values.size()) / sum;
}

std::vector<double> works(const std::vector<Pack>& packs) {
  std::vector<double> work;
  for (const Pack& p : packs) work.push_back(work_of(p, test::gpt_work));
  return work;
}

double tokens_of(const Pack& p) { return std::accumulate(p.begin(), p.end(), 0.0); }

/// Work of the replicas over their mean, of packs that are dealt to eight of them.
double of_replicas(const std::vector<int>& lengths, PackingRule rule) {
  rule.replicas = 8;
  const PackedBatches batches = pack_iterations({lengths}, rule, test::gpt_work);
  std::vector<double> sums(8, 0);
  for (std::size_t i = 0; i < batches.packs.size(); ++i) sums[i % 8] += work_of(batches.packs[i], test::gpt_work);
  return largest_over_mean(sums);
}

std::vector<int> sorted(std::vector<int> lengths) {
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

std::vector<int> all_of(const std::vector<Pack>& packs) {
  std::vector<int> lengths;
  for (const Pack& p : packs) lengths.insert(lengths.end(), p.begin(), p.end());
  return sorted(lengths);
}

}  // namespace

TEST_CASE("packs of 512 lengths: counts, fullness and spread as another program has them") {
  struct PackedLengths {
    Packing packing;
    std::size_t packs;
    double full, spread;
  };
  const double tokens = tokens_of(test::kLengths512);
  for (const auto& [packing, count, full, spread] :
       {PackedLengths{Packing::InOrder, 250, 0.78198095703125, 1.3532571236085413},
        PackedLengths{Packing::FirstFit, 204, 0.958309996361826, 1.1042578128645697},
        PackedLengths{Packing::FirstFitDecreasing, 198, 0.9873496932212753, 1.0717796418979648}}) {
    const std::vector<Pack> packs =
        pack_sequences(test::kLengths512, {.packing = packing, .room = kRoom}, test::gpt_work);
    CHECK(packs.size() == count);
    CHECK(tokens / kRoom / static_cast<double>(packs.size()) == doctest::Approx(full).epsilon(1e-12));
    CHECK(largest_over_mean(works(packs)) == doctest::Approx(spread).epsilon(1e-12));
    CHECK(all_of(packs) == sorted(test::kLengths512));
  }
}

TEST_CASE("what decreasing saves of the packs of first fit, as miles published it for 32 samples in 9216 tokens") {
  const auto saved = [](const LengthRule& rule) {
    std::size_t first = 0, decreasing = 0;
    for (int step = 0; step < 400; ++step) {
      const std::vector<int> lengths = draw_lengths(rule, 32, step);
      first += pack_sequences(lengths, {.packing = Packing::FirstFit, .room = 9216}, test::gpt_work).size();
      decreasing +=
          pack_sequences(lengths, {.packing = Packing::FirstFitDecreasing, .room = 9216}, test::gpt_work).size();
    }
    return 100 * (1 - static_cast<double>(decreasing) / static_cast<double>(first));
  };
  const auto lognormal = [](double sigma) {
    return LengthRule{.kind = LengthRule::Kind::Lognormal, .low = 1, .high = 9216, .mean = 4500, .sigma = sigma};
  };
  CHECK(saved({.kind = LengthRule::Kind::Uniform, .low = 300, .high = 400}) == 0);  // Published: 0.0 %.
  CHECK(saved({.kind = LengthRule::Kind::Uniform, .low = 2000, .high = 6000}) == doctest::Approx(6.8).epsilon(0.15));
  // Published: 4.9 % for lengths whose spread is not; it is between the figures for these two.
  CHECK(saved(lognormal(0.5)) > 4.9);
  CHECK(saved(lognormal(1)) < 4.9);
}

TEST_CASE("best fit takes the pack with the least room that is enough") {
  const std::vector<int> lengths{6, 7, 3, 4};
  CHECK(pack_sequences(lengths, {.packing = Packing::FirstFit, .room = 10}, test::gpt_work) ==
        std::vector<Pack>{{6, 3}, {7}, {4}});
  CHECK(pack_sequences(lengths, {.packing = Packing::BestFit, .room = 10}, test::gpt_work) ==
        std::vector<Pack>{{6, 4}, {7, 3}});
  CHECK(pack_sequences({3, 4, 6, 7}, {.packing = Packing::BestFitDecreasing, .room = 10}, test::gpt_work) ==
        std::vector<Pack>{{7, 3}, {6, 4}});
}

TEST_CASE("decreasing needs at most 11/9 of the fewest packs and 2/3, with first and best fit") {
  Rng rng(5, "full packs");
  for (int trial = 0; trial < 200; ++trial) {
    const int fewest = rng.integer(1, 30);
    std::vector<int> lengths;  // They fill that number of packs, and no fewer.
    for (int pack = 0; pack < fewest; ++pack)
      for (int left = 100; left > 0; left -= lengths.back()) lengths.push_back(rng.integer(1, std::min(left, 60)));
    for (const Packing packing : {Packing::FirstFitDecreasing, Packing::BestFitDecreasing})
      CHECK(std::ssize(pack_sequences(lengths, {.packing = packing, .room = 100}, test::gpt_work)) <=
            11 * fewest / 9.0 + 2 / 3.0);
  }
}

TEST_CASE("equal FLOPs are not equal tokens") {
  std::vector<double> tokens;
  const std::vector<Pack> packs =
      pack_sequences(test::kLengths96, {.packing = Packing::Balanced, .room = 140000, .replicas = 8}, test::gpt_work);
  REQUIRE(packs.size() == 8);
  for (const Pack& p : packs) tokens.push_back(tokens_of(p));
  CHECK(largest_over_mean(works(packs)) == doctest::Approx(1.0010).epsilon(1e-4));
  CHECK(largest_over_mean(tokens) == doctest::Approx(1.196).epsilon(1e-3));
}

TEST_CASE("no pack has more than the room, padding included, and each sequence is in one") {
  Rng rng(3, "packs");
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int> lengths(rng.integer(1, 60));
    for (int& n : lengths) n = rng.integer(1, 96);
    const int pad = 1 << rng.integer(0, 4);
    for (const Packing packing : {Packing::InOrder, Packing::FirstFit, Packing::FirstFitDecreasing, Packing::BestFit,
                                  Packing::BestFitDecreasing, Packing::Balanced}) {
      const auto packs = pack_sequences(lengths, {.packing = packing, .room = 96, .pad = pad}, test::gpt_work);
      CHECK(all_of(packs) == sorted(lengths));
      for (const Pack& p : packs) {
        int padded = 0;
        for (const int n : p) padded += (n + pad - 1) / pad * pad;
        CHECK(padded <= 96);
      }
    }
  }
}

TEST_CASE("packs go to replicas in turn, or to the one with the least work") {
  // Another program has 1.060 and 1.003 for 250 packs, and free counts; here 256 packs give each replica 32.
  PackingRule rule{.packing = Packing::InOrder, .room = kRoom};
  const double in_turn = of_replicas(test::kLengths512, rule);
  rule.share = PackShare::Work;
  const double balanced = of_replicas(test::kLengths512, rule);
  CHECK(in_turn > 1.03);
  CHECK(balanced < 1.01);
}

TEST_CASE("replicas with free counts have the same work within 1 %, where in turn they differ by 6 %") {
  // Another program has 1.060 and 1.003 for these 250 packs.
  PackingRule rule{.packing = Packing::InOrder, .room = kRoom, .free_counts = true};
  CHECK(of_replicas(test::kLengths512, rule) == doctest::Approx(1.060).epsilon(0.001));
  rule.share = PackShare::Work;
  CHECK(of_replicas(test::kLengths512, rule) == doctest::Approx(1.003).epsilon(0.001));
}

TEST_CASE("with free counts a replica with fewer packs has empty ones last") {
  PackingRule rule{.packing = Packing::None, .share = PackShare::Work, .room = 10, .replicas = 2, .free_counts = true};
  const PackedBatches batches = pack_iterations({{9, 2, 2, 2}, {3, 3}}, rule, test::gpt_work);
  CHECK(batches.micro_batches == 3);
  CHECK(batches.packs == std::vector<Pack>{{9}, {2}, {}, {2}, {}, {2}, {3}, {3}, {}, {}, {}, {}});
  CHECK_THROWS_AS(pack_iterations({{9}}, rule, test::gpt_work), InputError);
  rule.free_counts = false;
  CHECK(pack_iterations({{9, 2, 2, 2}}, rule, test::gpt_work).packs == std::vector<Pack>{{9}, {2}, {2}, {2}});
}

TEST_CASE("the work of a pack with context ranks of its sequences is the busiest rank's") {
  PackingRule rule{.packing = Packing::DynamicContext, .room = 32, .context = 4};
  const auto work = [](int length) { return 1.0 * length; };
  CHECK(work_of({8}, rule, work) == 8);           // One rank has all of it.
  CHECK(work_of({8, 8, 8, 8}, rule, work) == 8);  // Four have one each.
  CHECK(work_of({16}, rule, work) == 8);          // Two have a half.
  CHECK(work_of({16, 8}, rule, work) == 8);
  rule.packing = Packing::Balanced;
  CHECK(work_of({16, 8}, rule, work) == 24);
}

TEST_CASE("iterations have as many micro-batches as the one that needs most") {
  const PackedBatches batches = pack_iterations(
      {{5, 5, 5, 5}, {9, 9, 9, 9}}, {.packing = Packing::InOrder, .room = 10, .replicas = 2}, test::gpt_work);
  CHECK(batches.micro_batches == 2);
  CHECK(batches.iterations() == 2);
  CHECK(batches.packs == std::vector<Pack>{{5}, {5}, {5}, {5}, {9}, {9}, {9}, {9}});
  CHECK_THROWS_AS(
      pack_iterations({{5}, {9, 9}}, {.packing = Packing::InOrder, .room = 10, .replicas = 1}, test::gpt_work),
      InputError);
}

TEST_CASE("hill: odd places of the sorted packs ascend, even places descend") {
  std::vector<Pack> packs{{5}, {1}, {4}, {2}, {3}};
  order_packs(packs, PackOrder::Hill, [](const Pack& pack) { return work_of(pack, test::gpt_work); });
  CHECK(packs == std::vector<Pack>{{1}, {3}, {5}, {4}, {2}});
}

TEST_CASE("long sequences wait until each pack can have one") {
  const PackingRule rule{.packing = Packing::Workload, .room = 10, .replicas = 1};
  const PackedBatches batches = pack_iterations({{8, 4, 4, 4, 4}, {9, 3, 3, 3, 3}, {4, 4, 4, 2}}, rule, test::gpt_work);
  std::vector<int> longest;
  for (int i = 0; i < batches.iterations(); ++i) {
    int longest_here = 0;
    for (int j = 0; j < batches.micro_batches; ++j)
      for (const int n : batches.packs[i * batches.micro_batches + j]) longest_here = std::max(longest_here, n);
    longest.push_back(longest_here);
  }
  CHECK(longest == std::vector<int>{4, 3, 9});
}

TEST_CASE("draws repeat with their seed, differ between iterations, and keep their limits") {
  const LengthRule rule{.kind = LengthRule::Kind::Lognormal, .low = 1024, .high = 8192, .mean = 4096, .sigma = 1.1};
  const std::vector<int> first = draw_lengths(rule, 4000, 0);
  CHECK(first == draw_lengths(rule, 4000, 0));
  CHECK(first != draw_lengths(rule, 4000, 1));
  CHECK(*std::min_element(first.begin(), first.end()) == 1024);
  CHECK(*std::max_element(first.begin(), first.end()) == 8192);
  // The mean of the cut distribution, by its integral: 3254.
  CHECK(tokens_of(first) / 4000 == doctest::Approx(3254).epsilon(0.03));
  CHECK(draw_lengths({.kind = LengthRule::Kind::Listed, .listed = {1, 2, 3}}, 2, 1) == std::vector<int>{3, 1});
}

}  // namespace stagecraft::packing_test
