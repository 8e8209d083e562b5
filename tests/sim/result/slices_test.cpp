// Slices of sequences: their loads, and what unequal slices cost in a pipeline.

#include <doctest/doctest.h>

#include "sim/plan/load_table.hpp"
#include "tests/support/families.hpp"
#include "tests/support/loads.hpp"

namespace stagecraft::slices_test {
namespace {

/// Makespan where a sequence takes F 1 and B 2 on each chunk, and `attention` of it goes with pairs, the rest with
/// rows.
double time_of(const char* name, int p, int v, int sequences, int slices, double attention, const char* options,
               bool exchange = false) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
  const config::Value map = test::checked(options, *def.fields);
  Plan plan = plan_for(def, p, v, sequences * slices);
  StageCosts costs = uniform_costs(plan, test::times(1, 2));
  const PackedBatches batches =
      cut({.micro_batches = sequences, .packs = std::vector<Pack>(static_cast<std::size_t>(sequences), {4096})}, slices,
          exchange);
  std::vector<double> loads;
  for (std::size_t i = 0; i < batches.packs.size(); ++i) {
    const Load load = load_at(batches, i, 4096);
    loads.push_back((1 - attention) * load.rows + attention * load.pairs);
  }
  test::set_proportional_loads(plan, costs, loads);
  const Schedule order =
      build_schedule(def, {.plan = plan, .costs = costs, .iterations = 1, .options = read_options(def, &map)});
  const Program program = test::lowered(order, plan, costs, test::pure_delays());
  return test::run_ideal(program, test::delay_cluster(p, 0)).last_end().value;
}

}  // namespace

TEST_CASE("slice i of S has 1/S of the rows and (2i + 1)/S^2 of the pairs, which add up to the sequence") {
  for (const int slices : {1, 2, 5, 8}) {
    const PackedBatches batches = cut({.replicas = 2, .micro_batches = 1, .packs = {{512}, {256}}}, slices, false);
    CHECK(batches.micro_batches == slices);
    CHECK(batches.packs.size() == 2U * static_cast<std::size_t>(slices));
    double rows = 0, pairs = 0;
    for (int i = 0; i < slices; ++i) {
      const Load whole = load_at(batches, 2 * static_cast<std::size_t>(i), 512),
                 half = load_at(batches, 2 * static_cast<std::size_t>(i) + 1, 512);
      CHECK(whole.rows == doctest::Approx(1.0 / slices).epsilon(1e-15));
      CHECK(whole.pairs == doctest::Approx((2.0 * i + 1) / (slices * slices)).epsilon(1e-15));
      CHECK(half.pairs == doctest::Approx(whole.pairs / 4).epsilon(1e-15));
      rows += whole.rows, pairs += whole.pairs;
    }
    CHECK(rows == doctest::Approx(1).epsilon(1e-14));
    CHECK(pairs == doctest::Approx(1).epsilon(1e-14));
    CHECK(mean_load(batches, 512).rows == doctest::Approx(0.75 / slices).epsilon(1e-15));
    CHECK(mean_load(batches, 512).pairs == doctest::Approx(0.625 / slices).epsilon(1e-15));
  }
}

TEST_CASE("no row of a slice attends to another sequence of its pack") {
  const PackedBatches batches = cut({.packs = {{300, 100}}}, 2, false);  // Rows 0 to 199, and 200 to 299 with 100 more.
  CHECK(load_at(batches, 0, 400).pairs == doctest::Approx(200.0 * 200 / (2 * 400 * 400)).epsilon(1e-15));
  CHECK(load_at(batches, 1, 400).pairs ==
        doctest::Approx((300.0 * 300 - 200 * 200 + 100 * 100) / (2 * 400 * 400)).epsilon(1e-15));
}

// The figures come from an independent simulation of these orders.
TEST_CASE("unequal slices wait for each other; with shared attention they take (S m + p - 1) slices") {
  CHECK(time_of("seq1f1b", 4, 1, 3, 8, 0.3, "{slices: 8}") == doctest::Approx(11.4328125).epsilon(1e-12));
  CHECK(time_of("seq1f1b", 4, 1, 3, 8, 0.7, "{slices: 8}") == doctest::Approx(13.1765625).epsilon(1e-12));
  CHECK(time_of("seq1f1b", 8, 1, 2, 16, 0.7, "{slices: 16}") == doctest::Approx(9.551953125).epsilon(1e-12));
  CHECK(time_of("slimpipe", 4, 2, 2, 4, 0.3, "{slices: 4}") == doctest::Approx(16.78125).epsilon(1e-12));
  CHECK(time_of("slimpipe", 4, 3, 4, 12, 0.7, "{slices: 12, ahead: 2}") == doctest::Approx(39.81875).epsilon(1e-12));
  CHECK(time_of("slimpipe", 8, 5, 2, 16, 0.3, "{slices: 16}") == doctest::Approx(34.634765625).epsilon(1e-12));
  CHECK(time_of("seq1f1b", 4, 1, 3, 8, 0.7, "{slices: 8}", true) == doctest::Approx(10.125).epsilon(1e-12));
  CHECK(time_of("slimpipe", 4, 2, 2, 4, 0.7, "{slices: 4}", true) ==
        doctest::Approx(2 * 2 * 3 + 3 * 3 / 4.0).epsilon(1e-12));
}

}  // namespace stagecraft::slices_test
