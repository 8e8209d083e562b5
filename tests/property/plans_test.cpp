// Plans that planners offer can run: random models, clusters and memories for each planner that searches.

#include <doctest/doctest.h>

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/random.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/run.hpp"
#include "sim/search/plan_table.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::plans_test {
namespace {

constexpr const char* kFile = "scenarios/examples/edge-inference.yaml";
constexpr int kCases = 50;  ///< Random scenarios for each planner.

struct PlannerCase {
  const char* planner;
  const char* schedule;
  int room;             ///< A factor of the memory for activations and messages, of which planners know more or less.
  const char* options;  ///< After its name; {} stands for the number of devices.
};

const PlannerCase kPlanners[] = {{"balanced", "1f1b", 2, ", stages: {}"},
                                 {"brute", "1f1b", 2, ""},
                                 {"edgepipe", "inference", 1, ""},
                                 {"graph-exact", "graph", 1, ""},
                                 {"graphpipe", "graph", 1, ""},
                                 {"layerpipe", "layerpipe", 15, ""},
                                 {"pipedream", "1f1b", 2, ""},
                                 {"piper", "1f1b", 1, ""},
                                 {"spp", "spp-pe", 8, ""},
                                 {"2bw", "2bw", 1, ""}};

/// A chain of layers, in one model of three with a tensor that skips layers.
std::string random_model(Rng& rng, int layers, double& parameters, double& largest) {
  std::string text = "model={builder: listed, precision: fp32, layers: [";
  const int skips_from = rng.integer(0, 2) == 0 ? rng.integer(0, layers - 3) : -1;
  parameters = largest = 0;
  for (int l = 0; l < layers; ++l) {
    const double size = 1e5 * rng.integer(1, 40), output = 1e6 * rng.integer(1, 16);
    parameters += size;
    largest = std::max(largest, output);
    const bool joins = skips_from >= 0 && l == skips_from + 2;
    text += fmt::format("{}{{name: l{}, forward: {} GFLOP, parameters: {}, output: {} B, stash: {} B{}}}",
                        l > 0 ? ", " : "", l, rng.integer(1, 20), size, output, 1e6 * rng.integer(1, 20),
                        joins ? fmt::format(", inputs: [l{}, l{}]", l - 1, skips_from) : "");
  }
  return text + "]}";
}

/// Devices of two types on one switch, with memory for their part of the `state` and a few times `room` bytes.
std::string random_cluster(Rng& rng, int devices, double state, double room) {
  const int slow = rng.integer(0, devices / 2);
  const auto memory = [&] { return state / devices * (1 + 0.1 * rng.integer(1, 20)) + room * rng.integer(3, 12); };
  std::string groups = fmt::format("{{name: a, count: {}, type: fast, link: wire}}", devices - slow);
  if (slow > 0) groups += fmt::format(", {{name: b, count: {}, type: slow, link: wire}}", slow);
  return fmt::format(
      "cluster={{generator: star, groups: [{}], types: {{fast: {{peak: 2 TFLOP/s, memory: {:.0f} B, memory_bandwidth: "
      "100 GB/s}}, slow: {{peak: 1 TFLOP/s, memory: {:.0f} B, memory_bandwidth: 50 GB/s}}}}, links: {{wire: "
      "{{bandwidth: {} MB/s, latency: {} us}}}}}}",
      groups, memory(), memory(), 50 * rng.integer(1, 60), rng.integer(0, 9));
}

std::vector<std::string> random_scenario(Rng& rng, const PlannerCase& c) {
  const int devices = rng.integer(2, 5), layers = devices + rng.integer(2, 6);
  double parameters = 0, largest = 0;
  const std::string model = random_model(rng, layers, parameters, largest);
  const double bytes = std::string_view(c.schedule) == "inference" ? 4 : 16;  // Adam's state and a gradient.
  return {model,
          random_cluster(rng, devices, bytes * parameters, c.room * largest),
          fmt::format("plan={{planner: {}{}}}", c.planner, fmt::format(fmt::runtime(c.options), devices)),
          fmt::format("run.schedule={}", c.schedule),
          fmt::format("run.micro_batches={}", 4 * rng.integer(2, 8)),
          "run.iterations=3"};
}

/// What became of the scenarios of a planner.
struct OfferedPlans {
  int offered = 0;        ///< `plan` lists them with a time.
  int unchanged = 0;      ///< These need no other memory, recomputation or buffers than the scenario says.
  int without_limit = 0;  ///< These would not fit if the messages on their way had no limit.
};

/// Runs what `plan` offers, by the options that it prints.
void check_offered(const std::vector<std::string>& sets, const PlannerCase& planner, OfferedPlans& counts) {
  CAPTURE(join(sets, "\n"));
  const PlanTable table = compare_plans(load_experiment(kFile, sets), {.planners = planner.planner, .replay = 1});
  const PlanRow& row = table.rows.front();
  if (!row.ran()) return;
  ++counts.offered;
  counts.unchanged += row.change.empty();
  std::vector<std::string> options = sets;
  options.insert(options.end(), row.sets.begin(), row.sets.end());
  CAPTURE(join(row.sets));
  const CompiledExperiment c = compile(load_experiment(kFile, options));
  for (const char* backend : {"ideal", "fluid", "simgrid"})
    CHECK_NOTHROW(fullest_device_memory(run(c, backend).report, c.cluster()));
  if (c.report.buffers.is_limited()) {
    options.emplace_back("run.buffers=unlimited");
    const CompiledExperiment unlimited = compile(load_experiment(kFile, options));
    const Report report = run(unlimited, "ideal").report;
    counts.without_limit += std::any_of(report.devices.begin(), report.devices.end(),
                                        [](const DeviceReport& d) { return !d.memory.fits(); });
  }
}

}  // namespace

TEST_CASE("every plan that a planner offers can run, whatever the network does") {
  for (const PlannerCase& planner : kPlanners) {
    CAPTURE(std::string(planner.planner));
    Rng rng(61, planner.planner);
    OfferedPlans counts;
    const int cases = test::trials(kCases);
    for (int n = 0; n < cases; ++n) check_offered(random_scenario(rng, planner), planner, counts);
    MESSAGE(std::string(planner.planner) << ": " << counts.offered << " of " << cases << " offered, "
                                         << counts.unchanged << " of them unchanged");
    CHECK(counts.offered >= cases / 2);
    if (std::string_view(planner.planner) != "edgepipe") continue;
    // It counts the memory of messages, so its plans need no change. Some fit only because messages wait for memory.
    CHECK(counts.unchanged == counts.offered);
    CHECK(counts.offered >= cases * 9 / 10);
    if (test::all_trials()) CHECK(counts.without_limit > 0);
    MESSAGE(counts.without_limit << " of its plans would not fit without a limit");
  }
}

}  // namespace stagecraft::plans_test
