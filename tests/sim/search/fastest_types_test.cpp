// For time, a search with groups of devices also tries the devices of the fastest types alone.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/experiment/experiment.hpp"
#include "sim/search/choices.hpp"

namespace stagecraft::fastest_types_test {
namespace {

/// A site with two devices for each of these types, with links that are fast everywhere.
ChoiceTable search(const std::vector<std::string>& types) {
  std::string sites;
  for (std::size_t i = 0; i < types.size(); ++i)
    sites += (i > 0 ? ", {name: s" : "{name: s") + std::to_string(i) + ", devices: 2, type: " + types[i] + "}";
  const Experiment e = load_experiment(
      "scenarios/examples/quickstart.yaml",
      {"software=megatron-no-overlap", "model=gpt2-small",
       "cluster={generator: wan, sites: [" + sites +
           "], links: {lan: {bandwidth: 25 GB/s, latency: 5 us}, wan: {bandwidth: 25 GB/s, latency: 5 us}}}",
       "plan={planner: balanced, stages: 1, micro_batch_size: 8}", "run.micro_batches=2"});
  return search_choices(e, {.schedules = {"1f1b"}}, [](const SearchProgress&) {});
}

}  // namespace

TEST_CASE("between two sites of fast devices a slow one is left alone, and the answer is that of the fast ones") {
  const ChoiceTable mixed = search({"h100-sxm", "jetson-nano", "h100-sxm"}), fast = search({"h100-sxm", "h100-sxm"});
  REQUIRE(!mixed.front.empty());
  REQUIRE(!fast.front.empty());
  CHECK(mixed.front.front().devices == fast.front.front().devices);
  CHECK(mixed.front.front().device_types.find("jetson") == std::string::npos);
  CHECK(known_period(mixed.front.front()).value ==
        doctest::Approx(known_period(fast.front.front()).value).epsilon(1e-9));
}

}  // namespace stagecraft::fastest_types_test
