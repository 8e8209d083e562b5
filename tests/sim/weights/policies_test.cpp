#include <doctest/doctest.h>

#include "sim/weights/policy.hpp"

using namespace stagecraft;

namespace {

const WeightsDef& get(std::string_view name) { return get_from(weights::all(), "weights policy", name); }

VersionInput input(int micro, int micro_batches, int updates) {
  return {
      .stage_depth = 1, .pipeline_depth = 4, .micro = micro, .micro_batches = micro_batches, .updates_before = updates};
}

}  // namespace

TEST_CASE("every policy says what it is and where it comes from") {
  CHECK(weights::all().size() >= 2);
  for (const WeightsDef* def : weights::all()) {
    CAPTURE(def->name);
    CHECK_FALSE(def->summary.empty());
    CHECK_FALSE(def->source.empty());
    REQUIRE((def->forward != nullptr));
    REQUIRE((def->backward != nullptr));
    REQUIRE((def->copies != nullptr));
    CHECK(def->copies(input(0, 4, 0)) >= 1);
  }
}

TEST_CASE("a version is never read before it is made, in the order the policy is for") {
  for (const WeightsDef* def : weights::all()) {
    CAPTURE(def->name);
    for (int micro_batches : {1, 3, 8})
      for (int micro = 0; micro < 5 * micro_batches; ++micro) {
        const VersionInput in = input(micro, micro_batches, micro / micro_batches);
        CHECK(def->forward(in) >= 0);
        CHECK(def->forward(in) <= in.updates_before);
        CHECK(def->backward(in) <= in.updates_before);
        CHECK(def->backward(in) > in.updates_before - def->copies(in));  // older ones are not kept
      }
  }
}

TEST_CASE("flush: the newest version, one copy, and only with a drain") {
  const WeightsDef& flush = get("flush");
  CHECK(flush.needs_flush);
  for (int updates : {0, 1, 7}) {
    CHECK(flush.forward(input(3, 2, updates)) == updates);
    CHECK(flush.backward(input(3, 2, updates)) == updates);
    CHECK(flush.copies(input(3, 2, updates)) == 1);
  }
}

TEST_CASE("2bw: one update behind, both ways, whatever was updated meanwhile") {
  const WeightsDef& two = get("2bw");
  CHECK_FALSE(two.needs_flush);
  // m = 4: both first batches read W(0), the third reads W(1).
  const int expected[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
  for (int q = 0; q < 16; ++q)
    for (int updates : {0, 1, 2, 3}) {
      CHECK(two.forward(input(q, 4, updates)) == expected[q]);
      CHECK(two.backward(input(q, 4, updates)) == expected[q]);
      CHECK(two.copies(input(q, 4, updates)) == 2);
    }
}
