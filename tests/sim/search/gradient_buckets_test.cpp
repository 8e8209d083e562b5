// A search also tries plans that sum gradients in buckets next to the last backward.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/search/choices.hpp"

namespace stagecraft::gradient_buckets_test {
namespace {

/// Two GPUs whose link is fast enough for replicas to be worth it, and slow enough that their sums show.
const std::vector<std::string> kTwoReplicas{
    "software=plain",
    "model=gpt2-small",
    "cluster={generator: uniform, devices: 2, type: h100-sxm, link: {bandwidth: 40 GB/s, latency: 5 us}}",
    "plan={planner: balanced, stages: 1, replicas: 2, micro_batch_size: 2}",
    "run.micro_batches=4",
    "run.iterations=8"};

Experiment experiment_with(std::vector<std::string> sets) {
  sets.insert(sets.begin(), kTwoReplicas.begin(), kTwoReplicas.end());
  return load_experiment("scenarios/examples/quickstart.yaml", sets);
}

double simulated_period(const std::vector<std::string>& sets) {
  return run(compile(experiment_with(sets)), "ideal").report.period.value;
}

}  // namespace

TEST_CASE("a search finds that buckets of gradients make the best plan shorter, by as much as a run says") {
  const ChoiceTable table = search_choices(experiment_with({}), {.schedules = {"1f1b"}}, [](const SearchProgress&) {});
  REQUIRE(!table.front.empty());
  const Choice& first = table.front.front();
  CHECK(first.plan_words.find("gradient buckets") != std::string::npos);
  std::vector<std::string> sets = first.sets;
  CHECK(simulated_period(sets) == doctest::Approx(first.period.value).epsilon(1e-9));
  REQUIRE(sets.back() == "run.gradient_buckets=software");
  sets.back() = "run.gradient_buckets=none";
  CHECK(simulated_period(sets) > 1.02 * first.period.value);
}

TEST_CASE("a search finds that fewer, larger buckets are shorter where each sum takes long to begin") {
  const std::string cluster =
      "cluster={generator: uniform, devices: 2, type: h100-sxm, link: {bandwidth: 40 GB/s, latency: 1 ms}}";
  const ChoiceTable table =
      search_choices(experiment_with({cluster}), {.schedules = {"1f1b"}}, [](const SearchProgress&) {});
  REQUIRE(!table.front.empty());
  const Choice& first = table.front.front();
  CHECK(first.plan_words.find("gradient buckets of 200 MiB") != std::string::npos);
  std::vector<std::string> sets = first.sets;
  sets.push_back(cluster);
  CHECK(simulated_period(sets) == doctest::Approx(first.period.value).epsilon(1e-9));
  sets.emplace_back("run.gradient_buckets=software");
  CHECK(simulated_period(sets) > 1.02 * first.period.value);
}

}  // namespace stagecraft::gradient_buckets_test
