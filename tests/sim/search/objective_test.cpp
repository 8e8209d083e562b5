// The search for the lowest cost and the lowest energy, with amounts that are computed by hand.

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/run.hpp"
#include "sim/search/choices.hpp"

namespace stagecraft::objective_test {
namespace {

using Strings = std::vector<std::string>;

/// Two layers of 1 ms forward and 2 ms backward on devices of two types. The slow ones take twice as long.
const Strings kLayers = {
    "model={builder: uniform, layers: 2, forward: 1 ms, backward: 2 ms, output: 1 kB}",
    "cluster={generator: star, groups: [{name: a, count: 2, type: fast, link: wire}, {name: b, count: 1, type: slow, "
    "link: wire}], types: {fast: {peak: 2 TFLOP/s, memory: 1 GiB, memory_bandwidth: 100 GB/s, busy: 300 W, idle: 100 "
    "W}, slow: {peak: 1 TFLOP/s, "
    "speed: 0.5, memory: 1 GiB, memory_bandwidth: 100 GB/s, busy: 200 W, idle: 50 W}}, links: {wire: {bandwidth: 1 "
    "GB/s, latency: 100 us}}}",
    "plan={planner: balanced, stages: 1, micro_batch_size: 1}", "run.micro_batches=4"};

ChoiceTable search(Objective objective, const std::string& report) {
  Strings sets = kLayers;
  sets.push_back("report=" + report);
  return search_choices(load_experiment("scenarios/examples/quickstart.yaml", sets),
                        {.schedules = {"1f1b"}, .objective = objective}, [](const SearchProgress&) {});
}

}  // namespace

TEST_CASE("the cheapest and the fastest plan are on different devices") {
  // Four samples of 6 ms: 24 ms on a fast device and 48 ms on the slow one. At $3.60 an hour a fast device costs $0.001
  // a second. At $1.44 the slow one costs $0.0004.
  const ChoiceTable cheapest = search(Objective::Cost, "{prices: {fast: 3.6, slow: 1.44}}");
  REQUIRE(!cheapest.front.empty());
  const Choice& slow = cheapest.front.front();
  CHECK(slow.devices == 1);
  CHECK(slow.period.value == doctest::Approx(0.048).epsilon(1e-9));
  CHECK(slow.amount == doctest::Approx(0.048 * 0.0004).epsilon(1e-9));
  CHECK(cheapest.unit.column() == "dollars_per_billion_samples");
  CHECK(cheapest.unit.in_unit(slow.amount) == doctest::Approx(0.048 * 0.0004 / 4 * 1e9).epsilon(1e-9));
  CHECK(cheapest.unit.text(slow.amount) == "$4800 for 10^9 samples");
  CHECK(cheapest.bound == doctest::Approx(slow.amount).epsilon(1e-9));

  // At $2.16 the slow one costs $0.0006 a second, and 1.2 times as much as a fast one.
  const ChoiceTable fast = search(Objective::Cost, "{prices: {fast: 3.6, slow: 2.16}}");
  CHECK(fast.front.front().devices == 1);
  CHECK(fast.front.front().amount == doctest::Approx(0.024 * 0.001).epsilon(1e-9));

  const ChoiceTable fastest = search(Objective::Time, "{prices: {fast: 3.6, slow: 1.44}}");
  CHECK(fastest.front.front().devices > 1);
  CHECK(fastest.front.front().period.value < 0.024);
  CHECK(fastest.front.front().amount == fastest.front.front().period.value);
}

TEST_CASE("the row of the lowest energy has the joules of its run") {
  // Computation alone: 24 ms x 300 W = 7.2 J on a fast device, 48 ms x 200 W = 9.6 J on the slow one. Several devices
  // wait for each other with at least 50 W.
  const ChoiceTable table = search(Objective::Energy, "{price: 1}");
  REQUIRE(!table.front.empty());
  const Choice& first = table.front.front();
  CHECK(first.devices == 1);
  CHECK(first.amount == doctest::Approx(7.2).epsilon(1e-9));
  CHECK(table.unit.in_unit(first.amount) == doctest::Approx(1.8).epsilon(1e-9));
  CHECK(table.unit.column() == "energy_per_sample_J");
  CHECK(table.bound == doctest::Approx(7.2).epsilon(1e-9));
  const Json json = *Json::parse(choices_json(table));
  CHECK(json.at("objective").at("unit").text() == "joules a sample");
  CHECK(json.at("bound_s").is_null());
  CHECK(json.at("choices").items().front().at("energy_per_sample_J").number() == doctest::Approx(1.8).epsilon(1e-9));
}

TEST_CASE("failures make many devices dearer") {
  // Without messages two replicas cost what one device costs. With failures a job of two devices loses more.
  const ChoiceTable table =
      search(Objective::Cost, "{price: 3.6, failures: {mtbf: 10 h, checkpoint: 10 min, restart: 20 min}}");
  REQUIRE(!table.front.empty());
  CHECK(table.front.front().devices == 1);
  const double good = economics({.failures = FailureModel{{36000}, {600}, {1200}}}, {{"fast", 1}}, 0).goodput;
  CHECK(table.front.front().amount == doctest::Approx(0.024 * 0.001 / good).epsilon(1e-9));
}

TEST_CASE("without prices or powers there is no such search") {
  CHECK_THROWS_WITH_AS(search(Objective::Cost, "{tokens: 1000}"), doctest::Contains("no prices"), InputError);
  CHECK_THROWS_WITH_AS(search(Objective::Cost, "{prices: {fast: 1}}"), doctest::Contains("'slow' has no price"),
                       InputError);
  Strings sets = kLayers;
  sets[1] =
      "cluster={generator: uniform, devices: 2, type: any, types: {any: {peak: 1 TFLOP/s, memory: 1 GiB, "
      "memory_bandwidth: 1 GB/s}}, link: "
      "{bandwidth: 1 GB/s, latency: 1 us}}";
  CHECK_THROWS_WITH_AS(search_choices(load_experiment("scenarios/examples/quickstart.yaml", sets),
                                      {.objective = Objective::Energy}, [](const SearchProgress&) {}),
                       doctest::Contains("the power of 'any' is not known"), InputError);
}

}  // namespace stagecraft::objective_test
