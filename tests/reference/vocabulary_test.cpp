// Iterations of the released vocabulary parallelism, simulated with the passes that were measured in them.

#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "sim/result/report.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/reference.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::vocabulary_reference_test {
namespace {

constexpr int kRanks = 8, kMicroBatches = 128;

/// Times of a rank; nothing tells both passes of the scores apart, so they count as equal.
StageCost cost_of(const test::ReferenceRow& row, int rank) {
  const auto time = [&](const char* pass) { return 1e-6 * row.number(fmt::format("{}_{}", pass, rank)); };
  StageCost cost = test::times(time("forward"), time("backward"));
  StageCost part;
  part.passes.forward.other = part.passes.weight_gradient.other = Seconds{time("scores") / 2};
  cost.vocabulary = std::make_shared<const StageCost>(part);
  return cost;
}

Seconds simulated(const test::ReferenceRow& row) {
  const std::string& method = row.text("method");
  const bool divides = method != "baseline" && method != "redis";
  Plan plan = chain_plan(kRanks, kRanks, kMicroBatches);
  if (divides) plan.vocabulary.emplace();
  StageCosts costs;
  for (int r = 0; r < kRanks; ++r) costs.add({cost_of(row, r)});
  const Program program = test::program_of(divides ? method : "1f1b", plan, costs, test::pure_delays());
  const Cluster cluster = test::delay_cluster(kRanks, 0);
  return measure(program, test::run_ideal(program, cluster), cluster).makespan;
}

}  // namespace

TEST_CASE("measured passes give the 24 measured iterations within 2 %, without a fit") {
  const std::vector<test::ReferenceRow> rows = test::reference_rows("vocabulary_passes.csv");
  CHECK(rows.size() == 24);
  for (const test::ReferenceRow& row : rows) {
    const double error = simulated(row).value / (1e-3 * row.number("iteration_ms")) - 1;
    CAPTURE(row.text("sequence"));
    CAPTURE(row.text("vocabulary"));
    CAPTURE(row.text("method"));
    MESSAGE(row.text("method"), " ", 100 * error, " %");
    CHECK(std::abs(error) < 0.02);
  }
}

TEST_CASE("of two methods on one case the simulated one is faster that was") {
  std::map<std::pair<std::string, std::string>, std::vector<test::ReferenceRow>> cases;
  for (const test::ReferenceRow& row : test::reference_rows("vocabulary_passes.csv"))
    cases[{row.text("sequence"), row.text("vocabulary")}].push_back(row);
  int pairs = 0, right = 0;
  for (const auto& [name, rows] : cases)
    for (std::size_t a = 0; a < rows.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) {
        const bool measured = rows[a].number("iteration_ms") < rows[b].number("iteration_ms");
        ++pairs, right += (simulated(rows[a]) < simulated(rows[b])) == measured;
      }
  MESSAGE(right, " of ", pairs, " pairs");
  CHECK(right >= 0.9 * pairs);
}

}  // namespace stagecraft::vocabulary_reference_test
