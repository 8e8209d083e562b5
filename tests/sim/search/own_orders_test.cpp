// Searches with an order of the user from a file.

#include <doctest/doctest.h>

#include "sim/experiment/own_orders.hpp"
#include "sim/experiment/run.hpp"
#include "sim/search/choices.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::own_orders_test {
namespace {

const std::string kScenario = "scenarios/examples/quickstart.yaml";
const std::vector<std::string> kSets = {
    "model={builder: mlp, widths: [64, 64, 256, 64, 64, 64]}",
    "cluster={generator: uniform, devices: 3, type: any, types: {any: {peak: 1 TFLOP/s, memory: 1 GiB, "
    "memory_bandwidth: 100 GB/s}}, link: {bandwidth: 1 GB/s, latency: 1 us}}",
    "plan={planner: balanced, stages: 3, micro_batch_size: 2}", "run.micro_batches=4"};

/// 1F1B of three ranks and four micro-batches.
constexpr const char* kOrder =
    "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n"
    "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3\n"
    "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3\n";

ChoiceTable search(const std::string& schedule) {
  return search_choices(load_experiment(kScenario, kSets), {.schedules = {schedule}}, [](const SearchProgress&) {});
}

}  // namespace

TEST_CASE("an order of the user runs on the plans that have its stages and micro-batches, and on no others") {
  const std::string file = test::own_file("mine.csv", kOrder);
  const ChoiceTable mine = search(file);
  REQUIRE_FALSE(mine.front.empty());
  for (const Choice& c : mine.front) {
    CHECK(c.schedule == "mine");
    CHECK(c.stages == 3);
    CHECK(c.micro_batches == 4);
    std::vector<std::string> sets = kSets;
    sets.insert(sets.end(), c.sets.begin(), c.sets.end());
    sets.push_back("run.iterations=5");
    CHECK(run(compile(load_experiment(kScenario, sets)), "ideal").report.period.value ==
          doctest::Approx(c.period.value).epsilon(1e-12));
    sets.push_back("run.schedule=1f1b");  // Equal to the order in the file.
    CHECK(run(compile(load_experiment(kScenario, sets)), "ideal").report.period.value ==
          doctest::Approx(c.period.value).epsilon(1e-12));
  }
}

TEST_CASE("the shape of an order says where its stages lie") {
  const auto shape = [](const char* csv) { return shape_of({"test", csv, "test.csv"}); };
  CHECK(shape(kOrder).placed_as().name == "1f1b");
  const OrderShape v = shape("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
  CHECK(v.turns);
  CHECK(v.placed_as().name == "1f1b-v");
  CHECK(shape("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n").placed_as().name == "interleaved");
}

TEST_CASE("a file that is missing or no order is refused before the search") {
  CHECK_THROWS_WITH_AS(search("nowhere.csv"), doctest::Contains("there is no such file"), InputError);
  const std::string file = test::own_file("wrong.csv", "0F0,zero\n");
  CHECK_THROWS_WITH_AS(search(file), doctest::Contains("zero"), InputError);
}

}  // namespace stagecraft::own_orders_test
