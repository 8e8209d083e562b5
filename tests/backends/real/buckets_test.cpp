// Gradients summed in buckets next to the last backward: the bits of one sum at its end.

#include <doctest/doctest.h>

#include <algorithm>

#include "backends/real/gradient_buckets.hpp"
#include "backends/real/session.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/bucket_case.hpp"
#include "tests/support/buckets.hpp"

namespace stagecraft::buckets_test {
namespace {

const std::vector<double> kShares{0.125, 0.5, 0.375}, kAfter{0.25, 0.5, 1};

struct Case {
  std::string schedule = "1f1b", policy = "flush";
  ModelGraph model = test::deep_net(6, 6, 8, 3);
  Plan plan = test::replicated_halves(model, 4);
  Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  LoweringOptions lowering = {};

  Program program() const { return test::real_program(schedule, plan, test::policy(policy), 4, nullptr, lowering); }
  test::RealRun run(Program p, bool one_thread = false) const {
    return test::really_run(std::move(p), model, plan, test::policy(policy), training, one_thread);
  }
};

void compare(const Case& c, const std::vector<double>& shares = kShares, const std::vector<double>& after = kAfter) {
  CAPTURE(c.schedule);
  const Program whole = c.program(), buckets = test::in_buckets(whole, shares, after);
  REQUIRE(buckets.collectives.size() == shares.size() * whole.collectives.size());
  const test::RealRun expected = c.run(whole);
  for (const bool one_thread : {false, true}) {
    const test::RealRun run = c.run(buckets, one_thread);
    CHECK(run.learnt().losses == expected.learnt().losses);
    CHECK(run.learnt().weights == expected.learnt().weights);
  }
}

}  // namespace

TEST_CASE("sums in buckets change no bit: schedules, split backwards, slots, mixed precision, without overlap") {
  Case c;
  compare(c);
  for (const char* schedule : {"gpipe", "zb-h1"}) {
    c.schedule = schedule;
    compare(c);
  }
  compare(c, {0.2, 0.2, 0.2, 0.2, 0.2}, {0.1, 0.1, 0.1, 0.1, 0.1});
  compare(c, {0, 1, 0}, kAfter);
  c.training.slots = true;
  c.lowering.gradient_slots = true;
  compare(c);
  c.lowering.overlap = false;
  compare(c);
  Case mixed;
  mixed.model = test::deep_net(6, 6, 8, 3, OperationKind::Tanh, OperationKind::MeanSquare, 2);
  compare(mixed);
}

TEST_CASE("replicas that update on their own between flushes") {
  Case c;
  c.schedule = "pipedream";
  c.policy = "stash";
  c.training.optimizer.kind = OptimizerKind::Momentum;
  compare(c);
}

TEST_CASE("the first bucket is summed while the backward goes on, the last one after it") {
  const Case c;
  const test::RealRun run = c.run(test::in_buckets(c.program(), kShares, kAfter));
  const Program& p = run.program;
  for (const CollectiveCall& sum : p.collectives) {
    double last_end = 0;
    for (int m = 0; m < sum.members; ++m)
      for (const InstructionId w : p.waits_for(sum.member(m)))
        if (p.at(w).is_compute()) last_end = std::max(last_end, run.timeline.end[w]);
    // Its last member is released by a backward that still runs.
    CHECK((run.timeline.end[sum.first] <= last_end) == (sum.bucket < 2));
  }
}

TEST_CASE("buckets divide the numbers of a gradient without gaps, in proportion to their bytes") {
  const Program p = test::in_buckets(Case().program(), kShares, kAfter);
  const real::GradientBuckets buckets(p);
  for (const std::int64_t numbers : {0, 1, 7, 1000, 123457}) {
    std::int64_t end = numbers;
    for (int n = 0; n < 3; ++n) {
      const real::ShardRange range = buckets.range(n, numbers);
      CHECK(range.first + range.count == end);
      CHECK(std::abs(static_cast<double>(range.count) - kShares[n] * static_cast<double>(numbers)) <= 1.01);
      end = range.first;
    }
    CHECK(end == 0);
  }
}

TEST_CASE("gradients of tied weights are complete after the first of their operations") {
  real::StageNet net;
  const auto add = [&](std::int64_t weights, std::int64_t count) {
    real::Node& node = net.nodes.emplace_back();
    node.weights = weights;
    node.count = count;
  };
  add(0, 10), add(10, 0), add(10, 5), add(15, 20), add(0, 10);
  net.weights = net.dense_weights = 35;
  CHECK(real::summed_from(net, 5) == 35);
  CHECK(real::summed_from(net, 4) == 35);
  CHECK(real::summed_from(net, 3) == 15);
  CHECK(real::summed_from(net, 2) == 10);
  CHECK(real::summed_from(net, 1) == 10);
  CHECK(real::summed_from(net, 0) == 0);
}

}  // namespace stagecraft::buckets_test
