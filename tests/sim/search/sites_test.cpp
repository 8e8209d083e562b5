// A search on several sites also tries each site alone, with groups of devices too.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/experiment/experiment.hpp"
#include "sim/search/choices.hpp"
#include "sim/search/network_parts.hpp"

namespace stagecraft::sites_test {
namespace {

/// Sites of two devices each around a link of `wan`.
std::vector<std::string> sites(const std::string& second_type, const std::string& wan, int count = 2) {
  std::string list = "{name: a, devices: 2, type: a100-80}";
  if (count == 2) list += ", {name: b, devices: 2, type: " + second_type + "}";
  return {"software=megatron-no-overlap", "model=gpt2-small",
          "cluster={generator: wan, sites: [" + list + "], links: {lan: {bandwidth: 25 GB/s, latency: 5 us}, wan: " +
              "{bandwidth: " + wan + ", latency: 1 ms}}}",
          "plan={planner: balanced, stages: 1, micro_batch_size: 8}", "run.micro_batches=2"};
}

ChoiceTable search(const std::vector<std::string>& sets) {
  return search_choices(load_experiment("scenarios/examples/quickstart.yaml", sets), {.schedules = {"1f1b"}},
                        [](const SearchProgress&) {});
}

}  // namespace

TEST_CASE("over a slow link one site alone is best, as fast as a search on it alone says; over a fast one both are") {
  const ChoiceTable alone = search(sites("a100-80", "1 Gbit/s", 1));
  REQUIRE(!alone.front.empty());
  const ChoiceTable slow = search(sites("a100-80", "10 Mbit/s")), fast = search(sites("a100-80", "25 GB/s"));
  REQUIRE(!slow.front.empty());
  REQUIRE(!fast.front.empty());
  CHECK(slow.front.front().devices == 2);
  CHECK(known_period(slow.front.front()).value ==
        doctest::Approx(known_period(alone.front.front()).value).epsilon(1e-9));
  CHECK(fast.front.front().devices == 4);
  CHECK(known_period(fast.front.front()) < known_period(slow.front.front()));
}

TEST_CASE("parts that have equal devices and links are tried once") {
  const Experiment equal = load_experiment("scenarios/examples/quickstart.yaml", sites("a100-80", "1 Gbit/s"));
  const Experiment other = load_experiment("scenarios/examples/quickstart.yaml", sites("h100-sxm", "1 Gbit/s"));
  CHECK(NetworkParts(*equal.cluster).different_parts() ==
        std::vector<std::vector<DeviceId>>{{DeviceId{0}, DeviceId{1}}});
  CHECK(NetworkParts(*other.cluster).different_parts() ==
        std::vector<std::vector<DeviceId>>{{DeviceId{0}, DeviceId{1}}, {DeviceId{2}, DeviceId{3}}});
}

}  // namespace stagecraft::sites_test
