// The version that each op reads, from the order alone.

#include "sim/weights/reads.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/support/weights.hpp"

namespace stagecraft::reads_test {
using test::policy;
using test::reads_text;

namespace {

/// Reads of one stage by (kind, micro-batch).
std::map<std::pair<OpKind, int>, WeightRead> reads_of(const Schedule& schedule, const Plan& plan,
                                                      const WeightsRule& rule, int device) {
  const WeightReads reads(schedule, plan, rule);
  std::map<std::pair<OpKind, int>, WeightRead> result;
  const auto& ops = schedule.row(DeviceId{device});
  for (std::size_t i = 0; i < ops.size(); ++i) result[{ops[i].kind, ops[i].micro}] = reads.at(DeviceId{device}, i);
  return result;
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace

TEST_CASE("two stages with an update per micro-batch read the versions computed by hand") {
  const Plan plan = chain_plan(2, 2, 1);
  const Schedule schedule = test::build("pipedream", plan, 3);
  const auto text = [&](const char* name, int device = 0) { return reads_text(schedule, plan, policy(name), device); };
  CHECK(text("naive") == "0F0:0 0F1:0 0B0:0 0U0:1 0F2:1 0B1:1 0U1:2 0B2:2 0U2:3");
  CHECK(text("stash") == "0F0:0 0F1:0 0B0:0 0U0:1 0F2:1 0B1:0 0U1:2 0B2:1 0U2:3");
  CHECK(text("stash", 1) == "1F0:0 1B0:0 1U0:1 1F1:1 1B1:1 1U1:2 1F2:2 1B2:2 1U2:3");
  CHECK(text("vertical-sync") == "0F0:0 0F1:0 0B0:0 0U0:1 0F2:1 0B1:0 0U1:2 0B2:1 0U2:3");
  CHECK(text("vertical-sync", 1) == "1F0:0 1B0:0 1U0:1 1F1:0 1B1:0 1U1:2 1F2:1 1B2:1 1U2:3");
  CHECK(text("2bw", 1) == "1F0:0 1B0:0 1U0:1 1F1:0 1B1:0 1U1:2 1F2:1 1B2:1 1U2:3");
  // The first forward has nothing to predict by the list, and one update in the steady state.
  CHECK(text("geometric") == "0F0:0 0F1:0+1 0B0:0 0U0:1 0F2:1+1 0B1:1 0U1:2 0B2:2 0U2:3");
  CHECK(text("pipeoptim") == "0F0:0+1 0F1:0+1 0B0:0 0U0:1 0F2:1+1 0B1:1 0U1:2 0B2:2 0U2:3");
  CHECK(text("pipeoptim", 1) == "1F0:0 1B0:0 1U0:1 1F1:1 1B1:1 1U1:2 1F2:2 1B2:2 1U2:3");
  CHECK(text("spectrain-v2") == "0F0:0+1 0F1:0+1 0B0:0k 0U0:1 0F2:1+1 0B1:0k 0U1:2 0B2:1k 0U2:3");
  CHECK(text("pipemare") == "0F0:0 0F1:0 0B0:0 0U0:1 0F2:1 0B1:1+1 0U1:2 0B2:2+1 0U2:3");
  CHECK(text("layerpipe2") == text("pipemare"));
  CHECK(text("spike-compensation") == text("naive"));
}

TEST_CASE("spectrain predicts floor(k/2) + D - 1 - k updates forward, floor(k/2) backward") {
  const Plan plan = chain_plan(4, 4, 1);
  const Schedule schedule = test::build("pipedream", plan, 6);
  const int forward[] = {3, 2, 2, 1}, backward[] = {0, 0, 1, 1};
  for (int k = 0; k < 4; ++k)
    for (const auto& [op, read] : reads_of(schedule, plan, policy("spectrain"), k)) {
      if (op.first == OpKind::Forward) CHECK(read.horizon == forward[k]);
      if (op.first == OpKind::Backward && backward[k] > 0) CHECK(read.horizon == backward[k]);
      if (op.first == OpKind::Backward && backward[k] == 0) CHECK(read.from == WeightsFrom::Version);
    }
}

TEST_CASE("xpipe: the first micro-batch of an update predicts, the others use it") {
  // k = 2, D = 3, T = 2: forward round((2 + 3 - 1 - 2) / 2) = 1, backward floor((2 + 1 - 1) / 2) = 1.
  const Plan plan = chain_plan(3, 3, 2);
  const Schedule schedule = test::build("pipedream", plan, 3);
  CHECK(reads_text(schedule, plan, policy("xpipe"), 2) ==
        "2F0:0+1 2B0:0+1 2F1:0~ 2B1:0~ 2U0:1 2F2:1+1 2B2:1+1 2F3:1~ 2B3:1~ 2U1:2 2F4:2+1 2B4:2+1 2F5:2~ 2B5:2~ 2U2:3");
  // k = 0: forward round((2 + 3 - 2) / 2) = round(1.5) = 2, backward floor((2 + 0 - 1) / 2) = 0. The prediction of an
  // update stays, even when the stage is updated before the last micro-batch that shares it.
  CHECK(reads_text(schedule, plan, policy("xpipe"), 0) ==
        "0F0:0+2 0F1:0~ 0F2:0+2 0B0:0 0F3:0~ 0B1:0 0U0:1 0F4:1+2 0B2:1 0F5:1~ 0B3:1 0U1:2 0B4:2 0B5:2 0U2:3");
}

TEST_CASE("pipeoptim as released predicts one further, and does not divide by the micro-batches of an update") {
  const WeightsRule released = *get_from(weights::catalog(), "", "pipeoptim").as_released;
  for (const int each : {1, 3, 4}) {
    const Plan plan = chain_plan(4, 4, each);
    const Schedule schedule = test::build("pipedream", plan, 3);
    for (int k = 0; k < 4; ++k)
      for (const auto& [op, read] : reads_of(schedule, plan, released, k))
        if (op.first == OpKind::Forward) CHECK(read.horizon == 4 - k);
  }
}

TEST_CASE("recomputation reads the backward's weights, or the forward's if they are stashed") {
  Plan plan = chain_plan(1, 1, 2);
  Schedule schedule = test::schedule_from({"0F0 0F1 0F2 0R0 0B0 0F3 0R1 0B1 0U0 0R2 0B2 0R3 0B3 0U1"});
  schedule.drain_every = 0;
  const auto text = [&](const WeightsRule& rule) { return reads_text(schedule, plan, rule); };
  CHECK(text(policy("naive")) == "0F0:0 0F1:0 0F2:0 0R0:0 0B0:0 0F3:0 0R1:0 0B1:0 0U0:1 0R2:1 0B2:1 0R3:1 0B3:1 0U1:2");
  CHECK(text(policy("stash")) == "0F0:0 0F1:0 0F2:0 0R0:0 0B0:0 0F3:0 0R1:0 0B1:0 0U0:1 0R2:0 0B2:0 0R3:0 0B3:0 0U1:2");
  CHECK(text(policy("pipemare")) ==
        "0F0:0 0F1:0 0F2:0 0R0:0 0B0:0 0F3:0 0R1:0 0B1:0 0U0:1 0R2:1+1 0B2:1~ 0R3:1+1 0B3:1~ 0U1:2");
  WeightsRule stashed = policy("geometric");
  stashed.backward = BackwardWeights::SameAsForward;
  CHECK(text(stashed) == "0F0:0 0F1:0 0F2:0+1 0R0:0 0B0:0 0F3:0+1 0R1:0 0B1:0 0U0:1 0R2:0k 0B2:0k 0R3:0k 0B3:0k 0U1:2");
}

TEST_CASE("the weight gradient reads what the input gradient read") {
  const Plan plan = chain_plan(1, 1, 1);
  Schedule schedule = test::schedule_from({"0F0 0F1 0I0 0W0 0U0 0I1 0W1 0U1"});
  schedule.drain_every = 0;
  CHECK(reads_text(schedule, plan, policy("stash")) == "0F0:0 0F1:0 0I0:0 0W0:0 0U0:1 0I1:0 0W1:0 0U1:2");
  CHECK(reads_text(schedule, plan, policy("layerpipe2")) == "0F0:0 0F1:0 0I0:0 0W0:0 0U0:1 0I1:1+1 0W1:1~ 0U1:2");
  CHECK(reads_text(schedule, plan, policy("naive")) == "0F0:0 0F1:0 0I0:0 0W0:0 0U0:1 0I1:1 0W1:1 0U1:2");
}

TEST_CASE("staleness is max(0, ceil((D-1-k-j) / T)) in the steady state, for micro-batch j of an update") {
  for (int depth = 1; depth <= 8; ++depth)
    for (int each = 1; each <= 9; ++each) {
      const Plan plan = chain_plan(depth, depth, each);
      const int iterations = ceil_div(2 * depth, each) + 2;
      const Schedule schedule = test::build("pipedream", plan, iterations);
      const WeightReads stash(schedule, plan, policy("stash"));
      for (int k = 0; k < depth; ++k) {
        auto newest = reads_of(schedule, plan, policy("naive"), k);
        auto exact = reads_of(schedule, plan, policy("geometric"), k);
        for (int q = 0; q < each * iterations; ++q) {
          const int tau = depth - 1 - k, s = std::max(0, ceil_div(tau - q % each, each));
          const int forward = newest[{OpKind::Forward, q}].version, backward = newest[{OpKind::Backward, q}].version;
          CHECK(forward == std::max(0, q - tau) / each);
          CHECK(backward == q / each);
          if (q >= tau) CHECK(backward - forward == s);
          // FTPipe's identity: what is predicted arrives.
          CHECK(backward == forward + std::max(0, exact[{OpKind::Forward, q}].horizon));
        }
        CHECK(stash.needs(StageId{k}, 0).delay == ceil_div(depth - 1 - k, each));
        CHECK(stash.needs(StageId{k}, 0).buffers == ceil_div(depth - 1 - k, each) + 1);
      }
    }
}

TEST_CASE("after a drain versions continue, and counts and horizons start again") {
  const int depth = 4, each = 3, every = 2;
  const Plan plan = chain_plan(depth, depth, each);
  const Schedule drained = test::draining("pipedream", plan, 5, every);
  const Schedule alone = test::build("pipedream", plan, every);
  CHECK(drained.drain_every == every);
  for (const WeightsDef* def : weights::catalog())
    for (int k = 0; k < depth; ++k) {
      CAPTURE(def->name);
      CAPTURE(k);
      auto whole = reads_of(drained, plan, def->paper, k);
      auto first = reads_of(alone, plan, def->paper, k);
      for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
        for (int q = 0; q < 4 * each; ++q) {  // the second stretch of two iterations is the first, two versions on
          const int base = q / (every * each) * every;
          WeightRead expected = first[{kind, q % (every * each)}];
          expected.version += base;
          CHECK(whole[{kind, q}] == expected);
        }
      // The last stretch has one iteration, in which nothing is old.
      for (int q = 4 * each; q < 5 * each; ++q) CHECK(whole[{OpKind::Backward, q}].version == 4);
    }
  // Warm-up after a refill: the list's horizon grows again from nothing.
  auto exact = reads_of(test::draining("pipedream", chain_plan(depth, depth, 1), 12, 6), chain_plan(depth, depth, 1),
                        policy("geometric"), 0);
  for (int q = 0; q < 12; ++q) CHECK(std::max(0, exact[{OpKind::Forward, q}].horizon) == std::min(q % 6, 3));
}

TEST_CASE("if every iteration drains, policies without blind predictions equal the flush") {
  const Plan plan = test::dag_plan(4, 5, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  for (const char* name : {"gpipe", "1f1b", "graph"}) {
    const Schedule schedule = test::build(name, plan, 3);
    for (const WeightsDef* def : weights::catalog()) {
      if (def->paper.assumes_staleness()) continue;
      const WeightReads reads(schedule, plan, def->paper);
      for (int d = 0; d < 4; ++d) {
        CAPTURE(def->name);
        CHECK(reads_text(schedule, reads, d) == reads_text(schedule, plan, policy("flush"), d));
        CHECK(reads.needs(StageId{d}, 0).delay == 0);
        CHECK(reads.needs(StageId{d}, 0).buffers == 1);
      }
    }
  }
}

TEST_CASE("on a graph of stages k counts along the longest path to the sink") {
  // 0 -> 1 -> 3 and 2 -> 3: the short branch is as far from the end as its neighbor.
  const Plan plan = test::dag_plan(4, 1, {{0, 1}, {1, 3}, {2, 3}});
  const Schedule schedule = test::build("pipedream", plan, 6);
  const int horizon[] = {2, 1, 1, 0};
  for (int s = 0; s < 4; ++s) {
    auto reads = reads_of(schedule, plan, policy("pipeoptim"), s);
    CHECK(std::max(0, reads[{OpKind::Forward, 4}].horizon) == horizon[s]);
    auto exact = reads_of(schedule, plan, policy("geometric"), s);
    CHECK(std::max(0, exact[{OpKind::Forward, 4}].horizon) == horizon[s]);
    CHECK(reads_of(schedule, plan, policy("vertical-sync"), s)[{OpKind::Forward, 4}].version == 2);
  }
}

TEST_CASE("a stage that is never updated has one version, with every policy") {
  const Plan plan = chain_plan(2, 2, 3);
  const Schedule schedule = test::build("inference", plan, 2);
  for (const WeightsDef* def : weights::catalog()) {
    const WeightReads reads(schedule, plan, def->paper);
    CHECK(reads_text(schedule, reads) == "0F0:0 0F1:0 0F2:0 0F3:0 0F4:0 0F5:0");
    CHECK(reads.needs(StageId{0}, 0).buffers == 1);
  }
}

TEST_CASE("several stages on one device keep their own count") {
  const Plan plan = chain_plan(2, 1, 1);
  Schedule schedule = test::schedule_from({"0F0 1F0 1B0 1U0 0F1 1F1 0B0 0U0 1B1 1U1 0B1 0U1"});
  schedule.drain_every = 0;
  CHECK(reads_text(schedule, plan, policy("naive")) ==
        "0F0:0 1F0:0 1B0:0 1U0:1 0F1:0 1F1:1 0B0:0 0U0:1 1B1:1 1U1:2 0B1:1 0U1:2");
  CHECK(reads_text(schedule, plan, policy("stash")) ==
        "0F0:0 1F0:0 1B0:0 1U0:1 0F1:0 1F1:1 0B0:0 0U0:1 1B1:1 1U1:2 0B1:0 0U1:2");
}

TEST_CASE("2bw on an order that runs too far ahead is refused with the micro-batches that it needs") {
  for (const int depth : {3, 4, 8})
    for (int each = 1; each <= depth; ++each) {
      const Plan plan = chain_plan(depth, depth, each);
      const Schedule schedule = test::build("pipedream", plan, 4);
      if (each >= depth - 1) {
        CHECK_NOTHROW(WeightReads(schedule, plan, policy("2bw")));
        continue;
      }
      try {
        WeightReads(schedule, plan, policy("2bw"));
        FAIL("a version that is not made yet was read");
      } catch (const Infeasible& error) {
        CHECK(error.code() == "weights");
        CHECK(error.problem().help.find("run.micro_batches to " + std::to_string(depth - 1)) != std::string::npos);
      }
    }
}

}  // namespace stagecraft::reads_test
