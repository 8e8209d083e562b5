// At its end a search swaps unlike devices in the plans of its first rows.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "sim/search/choices.hpp"

namespace stagecraft::device_swaps_test {
namespace {

/// Four GPUs with a link between each two: in the order d0 d1 d3 d2 they are a ring of fast links.
Experiment four_gpus(const std::string& slow, const std::vector<std::string>& sets = {}) {
  const auto link = [](const std::string& a, const std::string& b, const std::string& bandwidth) {
    return fmt::format("{{name: {0}-{1}, between: [{0}, {1}], bandwidth: {2}, latency: 1 us}}", a, b, bandwidth);
  };
  const std::string fast = "50 GB/s";
  std::vector<std::string> list{
      "software=plain",
      "model=gpt2-small",
      fmt::format("cluster={{generator: explicit, types: {{gpu: {{preset: h100-sxm}}}}, devices: [{{name: d0, type: "
                  "gpu}}, {{name: d1, type: gpu}}, {{name: d2, type: gpu}}, {{name: d3, type: gpu}}], links: [{}, {}, "
                  "{}, {}, {}, {}]}}",
                  link("d0", "d1", fast), link("d1", "d3", fast), link("d2", "d3", fast), link("d0", "d2", fast),
                  link("d1", "d2", slow), link("d0", "d3", slow)),
      "plan={planner: balanced, stages: 4, micro_batch_size: 2}",
      "run.micro_batches=8",
      "run.iterations=8"};
  list.insert(list.end(), sets.begin(), sets.end());
  return load_experiment("scenarios/examples/quickstart.yaml", list);
}

ChoiceTable search(const std::string& slow) {
  return search_choices(four_gpus(slow), {.schedules = {"1f1b"}}, [](const SearchProgress&) {});
}

std::string line_about_swaps(const ChoiceTable& table) {
  for (const std::string& line : table.reasons)
    if (line.find("unlike devices") != std::string::npos) return line;
  return {};
}

}  // namespace

TEST_CASE("a swap finds the ring of fast links, and the row has its devices") {
  const ChoiceTable table = search("40 GB/s");
  REQUIRE(!table.front.empty());
  const Choice& first = table.front.front();
  std::vector<std::string> sets = first.sets;
  const auto period = [&] { return run(compile(four_gpus("40 GB/s", sets)), "ideal").report.period.value; };
  CHECK(period() == doctest::Approx(first.period.value).epsilon(1e-9));
  const std::size_t devices = sets.front().find(", devices: [");
  REQUIRE(devices != std::string::npos);
  sets.front() = sets.front().substr(0, devices) + "}";
  CHECK(period() > 1.005 * first.period.value);
  CHECK(line_about_swaps(table).find("% better") != std::string::npos);
}

TEST_CASE("no devices are swapped that are alike") {
  const ChoiceTable table = search("50 GB/s");
  REQUIRE(!table.front.empty());
  CHECK(line_about_swaps(table).empty());
}

}  // namespace stagecraft::device_swaps_test
