// Multiplying all times by one factor, such as another unit of time, changes no order.

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/common_unit.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "sim/schedule/builder.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::time_scale_test {
namespace {

constexpr double kFactors[] = {1e-3, 0.1, 3, 7, 10, 1000};

struct Work {
  Plan plan;
  std::vector<StageCost> costs;  ///< [stage]
  double bandwidth = 0, latency = 0;

  Schedule order(const ScheduleDef& def, const std::vector<std::string>& sets, double factor) const {
    StageCosts scaled;
    for (StageCost c : costs) {
      for (Seconds* time : {&c.forward, &c.input_gradient, &c.weight_gradient, &c.backward, &c.recompute, &c.update})
        time->value *= factor;
      scaled.add({c});
    }
    const Cluster cluster = test::star(plan.stage_count(), bandwidth / factor, latency * factor);
    const std::optional<config::Value> options = options_of(def, sets);
    return build_schedule(def, {.plan = plan,
                                .costs = scaled,
                                .options = read_options(def, options ? &*options : nullptr),
                                .cluster = &cluster});
  }
};

/// Multiples of a tenth of a millisecond, which is no binary number: many sums of them are equal but for rounding.
Work random_work(const ScheduleDef& def, Rng& rng) {
  const int ranks = rng.integer(2, 5), micro_batches = 2 * rng.integer(1, 6);
  Work work{plan_for(def, ranks, def.chunks.min, micro_batches), {}};
  const int longest = rng.integer(1, 6);
  const auto time = [&] { return Seconds{1e-4 * rng.integer(1, longest)}; };
  const bool alike = rng.integer(0, 2) == 0;
  for (int s = 0; s < work.plan.stage_count(); ++s) {
    StageCost c;
    c.forward = c.recompute = time(), c.input_gradient = time(), c.weight_gradient = time(), c.update = time();
    c.backward = c.input_gradient + c.weight_gradient;
    c.memory.stash = Bytes{1.0 * rng.integer(1, 4)};
    work.costs.push_back(alike && s > 0 ? work.costs.front() : c);
  }
  for (StageEdge& edge : work.plan.edges) edge.bytes = Bytes{100.0 * rng.integer(0, 3)};
  work.bandwidth = 1e6, work.latency = 1e-4 * rng.integer(0, 2);
  return work;
}

/// Compares the orders of all factors; the number of works on which the schedule exists.
int check_orders(const ScheduleDef& def, const std::vector<std::string>& sets, int rounds) {
  Rng rng(1, def.name);
  int compared = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(def.name);
    CAPTURE(round);
    try {
      const Work work = random_work(def, rng);
      const Schedule order = work.order(def, sets, 1);
      for (const double factor : kFactors) {
        CAPTURE(factor);
        CHECK(work.order(def, sets, factor).ranks == order.ranks);
      }
      ++compared;
    } catch (const InputError&) {  // It needs other stages, or a file.
    } catch (const Infeasible&) {  // It does not fit.
    }
  }
  return compared;
}

}  // namespace

TEST_CASE("common unit: times that are equal but for rounding are equal in it, whatever the factor") {
  CHECK(0.1 + 0.2 != 0.3);
  CHECK(0.1 * 1e-3 * 3 != 0.3 * 1e-3);
  for (const double factor : kFactors) {
    CAPTURE(factor);
    // Multiples of 0.1.
    const CommonUnit unit({0.1 * factor, 0.4 * factor, 0.7 * factor, 0});
    CHECK(unit(0.1 * factor) + unit(0.2 * factor) == unit(0.3 * factor));
    CHECK(unit((0.1 + 0.2) * factor) == 3);
    CHECK(unit(0.7 * factor) == 7);
    // No common measure: multiples of the longest.
    const CommonUnit longest({factor * std::sqrt(2.0), factor * std::sqrt(3.0)});
    CHECK(longest(factor * std::sqrt(3.0)) == 1);
    CHECK(longest(factor * std::sqrt(2.0)) == CommonUnit({std::sqrt(2.0), std::sqrt(3.0)})(std::sqrt(2.0)));
  }
  CHECK(CommonUnit({0})(0) == 0);
  CHECK(CommonUnit()(INFINITY) == INFINITY);
  CHECK(common_measure({6, 4, 0}) == 2);
  CHECK(common_measure({1, std::sqrt(2.0)}) == 0);
}

TEST_CASE("schedules: all times multiplied by one factor give the same order") {
  int found_from_costs = 0;
  for (const ScheduleDef* def : schedules::catalog()) {
    const std::string name(def->name);
    const bool from_costs = name == "zb-1p" || name == "zb-2p" || name == "zb-v-auto" || name == "v-adaptive";
    if (name == "synthesised") continue;
    const int rounds = from_costs ? test::trials(600, 60) : 3;
    const int compared = check_orders(*def, {}, rounds);
    if (from_costs) CHECK(compared > rounds / 2);
    found_from_costs += from_costs;
  }
  CHECK(found_from_costs == 4);
}

TEST_CASE("synthesised: all times multiplied by one factor give the same order") {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", "synthesised");
  const int rounds = test::trials(100, 12);
  CHECK(check_orders(def, {"effort=0.1"}, rounds) > rounds / 2);
}

}  // namespace stagecraft::time_scale_test
