// Sequences on the fewest context ranks with room for them: what every pack keeps, and loads in closed form.

#include "sim/plan/context_ranks.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "sim/plan/packing.hpp"
#include "sim/plan/plan.hpp"
#include "tests/support/drawn_lengths.hpp"

namespace stagecraft::context_ranks_test {
namespace {

PackingRule rule_of(int ranks, int room, int pad = 1) {
  return {.packing = Packing::DynamicContext, .room = room, .pad = pad, .context = ranks};
}

int computed(int length, int pad) { return (length + pad - 1) / pad * pad; }

/// The fewest ranks, a power of two, with room for a sequence.
int fewest_ranks(int length, const PackingRule& rule) {
  int ranks = 1;
  while (computed(length, rule.pad) > ranks * (rule.room / rule.context)) ranks *= 2;
  return ranks;
}

}  // namespace

TEST_CASE("each sequence is on the fewest ranks that have room for it, and no rank has more than its room") {
  Rng rng(5, "context ranks");
  for (int trial = 0; trial < 200; ++trial) {
    const int ranks = 1 << rng.integer(1, 4), pad = 1 << rng.integer(0, 3);
    const PackingRule rule = rule_of(ranks, 96 * ranks, pad);
    std::vector<int> lengths(rng.integer(1, 80));
    for (int& n : lengths) n = rng.integer(1, rng.integer(0, 3) == 0 ? rule.room : 150);
    const PackedBatches batches = pack_iterations({lengths}, rule, test::gpt_work);
    REQUIRE(batches.ranks.size() == batches.packs.size());
    std::vector<int> packed;
    for (std::size_t i = 0; i < batches.packs.size(); ++i) {
      const Pack& pack = batches.packs[i];
      std::vector<double> tokens(ranks, 0);
      REQUIRE(batches.ranks[i].size() == pack.size());
      for (std::size_t s = 0; s < pack.size(); ++s) {
        const RankRange range = batches.ranks[i][s];
        CHECK(range.count == fewest_ranks(pack[s], rule));
        CHECK(range.first % range.count == 0);
        REQUIRE(range.first + range.count <= ranks);
        for (int r = range.first; r < range.first + range.count; ++r)
          tokens[r] += static_cast<double>(computed(pack[s], pad)) / range.count;
        packed.push_back(pack[s]);
      }
      CHECK(*std::max_element(tokens.begin(), tokens.end()) <= 96);
    }
    std::sort(packed.begin(), packed.end());
    std::sort(lengths.begin(), lengths.end());
    CHECK(packed == lengths);
  }
}

TEST_CASE("where every sequence needs all ranks, balanced packs have the same loads, to the last bit") {
  const std::vector<int> lengths{8192, 4100, 7000, 5000, 6004, 8000};
  PackingRule rule = rule_of(4, 8192);
  const PackedBatches dynamic = pack_iterations({lengths}, rule, test::gpt_work);
  rule.packing = Packing::Balanced;
  const PackedBatches balanced = pack_iterations({lengths}, rule, test::gpt_work);
  REQUIRE(dynamic.packs == balanced.packs);
  for (std::size_t i = 0; i < dynamic.packs.size(); ++i) CHECK(load_at(dynamic, i, 8192) == load_at(balanced, i, 8192));
}

TEST_CASE("sequences of one rank exchange nothing, and a pack is its busiest rank") {
  const PackedBatches batches{.packs = {{64, 64, 32}}, .context = 4, .ranks = {{{0, 1}, {1, 1}, {1, 1}}}};
  const Load load = load_at(batches, 0, 1024);
  CHECK(load.samples == 3);
  CHECK(load.rows == 4 * 96.0 / (3 * 1024));
  CHECK(load.pairs == 4 * (64.0 * 64 + 32 * 32) / (3 * 1024 * 1024));
  CHECK(load.exchanged == 0);
}

TEST_CASE("two ranks of four receive a third of what four receive") {
  const PackedBatches batches{.packs = {{512, 512}}, .context = 4, .ranks = {{{0, 2}, {2, 2}}}};
  const Load load = load_at(batches, 0, 1024);
  CHECK(load.rows == 0.5);
  CHECK(load.pairs == 4 * (512.0 * 512 / 2) / (2 * 1024 * 1024));
  CHECK(load.exchanged == doctest::Approx(1.0 / 3).epsilon(1e-15));
  const Load mean = mean_load(batches, 1024);
  CHECK(mean.rows == load.rows);
  CHECK(mean.pairs == load.pairs);
  CHECK(mean.exchanged == load.exchanged);
}

TEST_CASE("a stage with another context group, or one that exchanges heads, is refused by its name") {
  const PackedBatches batches{.packs = {{64}}, .context = 4, .ranks = {{{0, 1}}}};
  const auto refusal = [&](int context, ContextExchange exchange) -> std::string {
    Plan plan;
    plan.stages.push_back({.name = "s0"});
    plan.stages.back().shape.degrees.context = context;
    plan.stages.back().shape.exchange = exchange;
    try {
      set_loads(plan, batches, 1024);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  CHECK(refusal(4, ContextExchange::Ring) == "");
  CHECK(refusal(2, ContextExchange::Ring).find("stage 's0' divides sequences over 2 context ranks by rows") !=
        std::string::npos);
  CHECK(refusal(4, ContextExchange::AllToAll).find("4 context ranks by heads") != std::string::npos);
}

}  // namespace stagecraft::context_ranks_test
