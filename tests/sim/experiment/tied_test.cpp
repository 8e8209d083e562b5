// Tied weights from a scenario: the time that the exchange of their gradients adds, computed by hand, on every
// simulator.

#include <doctest/doctest.h>

#include <set>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/files.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::tied_test {
namespace {

constexpr double kLatency = 3e-3, kBandwidth = 1e9;
constexpr double kBytes = 25e6 * 4;  // The gradients of 25 million weights in single precision.
constexpr const char* kSimulators[] = {"ideal", "fluid", "simgrid"};

/// Equal layers, 1 s forward and 2 s backward. The layers in `holders` share 25 million weights if `tied`, else each
/// has 25 million.
Experiment scenario(const std::string& schedule, int layers, const std::vector<int>& holders, bool tied,
                    const std::vector<std::string>& sets = {}) {
  std::string model;
  for (int l = 0; l < layers; ++l) {
    const bool holds = std::find(holders.begin(), holders.end(), l) != holders.end();
    model += fmt::format("    - {{name: l{}, forward: 1 TFLOP, input_gradient: 1 TFLOP{}{}}}\n", l,
                         holds && (!tied || l == holders.front()) ? ", parameters: 25e6" : "",
                         holds && tied ? ", tie: w" : "");
  }
  const std::string file =
      test::own_file("tied_test.yaml",
                     fmt::format("schema: scenario/2\n"
                                 "software: none\n"
                                 "model:\n  builder: listed\n  layers:\n{}"
                                 "cluster: {{generator: uniform, devices: 16, type: any, link: {{bandwidth: 1 GB/s, "
                                 "latency: 3 ms}},\n"
                                 "  types: {{any: {{peak: 1 TFLOP/s, efficiency: 1, memory: 80 GiB, memory_bandwidth: "
                                 "10 TB/s, launch: 0}}}}}}\n"
                                 "plan: {{planner: balanced, stages: {}}}\n"
                                 "run: {{schedule: {}, micro_batches: 4, iterations: 1}}\n",
                                 model, layers, schedule));
  return load_experiment(file, sets);
}

double makespan(const Experiment& s, const char* backend) { return run(compile(s), backend).report.makespan.value; }

/// Seconds that a tie adds to an iteration, compared with separate weights of the same size, on all simulators.
double added(const std::string& schedule, int layers, const std::vector<int>& holders,
             const std::vector<std::string>& sets = {}) {
  const Experiment with = scenario(schedule, layers, holders, true, sets),
                   without = scenario(schedule, layers, holders, false, sets);
  const double ideal = makespan(with, "ideal") - makespan(without, "ideal");
  for (const char* backend : kSimulators)
    CHECK(makespan(with, backend) - makespan(without, backend) == doctest::Approx(ideal).epsilon(1e-9));
  return ideal;
}

/// Seconds of a ring of n: 2(n-1) latencies, then 2(n-1)/n of the bytes.
double ring(int members, double bytes = kBytes) {
  return 2 * (members - 1) * kLatency + 2.0 * (members - 1) / members * bytes / kBandwidth;
}

/// Devices of all stages that have the layer, copies of a stage included.
std::set<DeviceId> devices_with(const CompiledExperiment& p, const char* layer) {
  std::set<DeviceId> result;
  for (const Stage& stage : p.plan.stages)
    if (std::find(stage.shape.layers.begin(), stage.shape.layers.end(), *p.model().find(layer)) !=
        stage.shape.layers.end())
      result.insert(stage.leaders.begin(), stage.leaders.end());
  return result;
}

doctest::Approx exactly(double seconds) { return doctest::Approx(seconds).epsilon(1e-9); }

}  // namespace

TEST_CASE("tied weights of two stages add two latencies and their bytes to an iteration") {
  CHECK(ring(2) == exactly(0.106));  // 2 x 3 ms, and 100 MB at 1 GB/s.
  for (const char* overlap : {"run.overlap=true", "run.overlap=false"})
    for (const char* transfers : {"run.transfers=rendezvous", "run.transfers=eager"})
      CHECK(added("1f1b", 2, {0, 1}, {overlap, transfers}) == exactly(0.106));
  CHECK(added("gpipe", 2, {0, 1}, {"run.iterations=3"}) == exactly(0.106));
}

TEST_CASE("the exchange begins after the last gradient of all, and both updates wait for it") {
  const Experiment s = scenario("1f1b", 2, {0, 1}, true);
  const CompiledExperiment p = compile(s);
  for (const char* backend : kSimulators) {
    const Timeline t = run(p, backend).timeline;
    const auto start = [&](const char* name) { return t.start[test::find(p.program, name)]; };
    const double last = t.end_of(test::find(p.program, "0B3")).value;
    CHECK(start("0TAR0") == exactly(last));
    CHECK(start("1TAR0") == exactly(last));
    CHECK(start("0U0") == exactly(last + 0.106));
    CHECK(start("1U0") == exactly(last + 0.106));
  }
}

TEST_CASE("tied weights make the period longer by one exchange") {
  const auto period = [](bool tied) {
    const Experiment s = scenario("1f1b", 2, {0, 1}, tied, {"run.iterations=4"});
    return run(compile(s), "ideal").report.period.value;
  };
  CHECK(period(true) - period(false) == exactly(0.106));
}

TEST_CASE("the exchange is a ring of the stages that hold the weights") {
  CHECK(added("1f1b", 3, {0, 1, 2}) == exactly(ring(3)));
  CHECK(ring(3) == exactly(4 * 3e-3 + 4.0 / 3 * 0.1));
  CHECK(added("1f1b", 4, {0, 3}) == exactly(ring(2)));
  CHECK(added("zb-h1", 4, {0, 3}) == exactly(ring(2)));
}

TEST_CASE("two replicas have two parallel rings, after the all-reduces of the replicas") {
  const std::vector<std::string> sets{"plan.replicas=2", "plan.micro_batch_size=2"};
  CHECK(added("1f1b", 4, {0, 3}, sets) == exactly(ring(2)));
  const Experiment s = scenario("1f1b", 4, {0, 3}, true, sets);
  const CompiledExperiment p = compile(s);
  const Timeline t = run(p, "simgrid").timeline;
  const double last = t.end_of(test::find(p.program, "0B3")).value;
  CHECK(t.end_of(test::find(p.program, "0AR0")).value == exactly(last + ring(2)));
  CHECK(t.end_of(test::find(p.program, "0TAR0")).value == exactly(last + 2 * ring(2)));
}

TEST_CASE("interleaved: the exchange between first and last device is one ring of two") {
  const std::vector<std::string> sets{"run.schedule={name: interleaved, chunks: 2}"};
  CHECK(added("interleaved", 4, {0, 3}, sets) == exactly(ring(2)));
  CHECK(added("interleaved", 8, {0, 7}, sets) == exactly(ring(2)));
}

TEST_CASE("first and last stage on one device need no message, but both updates come last") {
  // Adam in single precision reads four numbers and writes three for each weight, at 10 TB/s. The update of the last
  // stage no longer stands where the device would wait for messages.
  const double update = 7 * kBytes / 10e12;
  for (const char* schedule : {"zb-v", "hanayo", "1f1b-v"}) CHECK(added(schedule, 8, {0, 7}) == exactly(update));
  for (const char* schedule : {"chimera", "gems"}) CHECK(added(schedule, 4, {0, 3}) == exactly(update));
}

TEST_CASE("inference exchanges no gradients of tied weights") {
  const CompiledExperiment p = compile(scenario("inference", 2, {0, 1}, true));
  CHECK_FALSE(test::has_ties(p.plan));
  CHECK(to_text(p.program).find("TAR") == std::string::npos);
}

TEST_CASE("bidirectional pipelines first sum the copies, then exchange in rings of two") {
  // Stages 0 and 2 of 4 lie on devices 0 and 2, their copies on 3 and 1: rings of 0 and 2 and of 3 and 1.
  const Experiment s = scenario("chimera", 4, {0, 2, 3}, true);
  const CompiledExperiment p = compile(s);
  REQUIRE(std::count_if(p.program.collectives.begin(), p.program.collectives.end(),
                        [](const CollectiveCall& c) { return c.tie == 0 && c.members == 2; }) == 2);
  for (const char* backend : kSimulators) {
    const Timeline t = run(p, backend).timeline;
    const InstructionId tied = test::find(p.program, "0TAR0");
    CHECK(t.end[tied] - t.start[tied] == exactly(ring(2)));
    CHECK(t.start[tied] >= t.end_of(test::find(p.program, "0AR0")).value);
  }
}

TEST_CASE("GPUs of a group exchange their shards at the same time, each over its own link") {
  // Eight links of 1/8 GB/s carry an eighth of the gradient each in the time that one of 1 GB/s takes for all.
  const std::string model =
      "model={builder: transformer, kind: gpt, layers: 2, hidden: 512, heads: 8, sequence: 16, vocabulary: 10000";
  const auto exchange = [&](const std::string& group) {
    const Experiment s = scenario("1f1b", 2, {0, 1}, true, {model + group + "}"});
    const CompiledExperiment p = compile(s);
    const InstructionId tied = test::find(p.program, "0TAR0");
    const Timeline t = run(p, "simgrid").timeline;
    return t.end[tied] - t.start[tied];
  };
  const double bytes = (10000 + 16) * 512 * 4.0;  // Tokens and places.
  CHECK(exchange("") == exactly(ring(2, bytes)));
  CHECK(exchange(", tensor_parallel: 8") == exactly(2 * kLatency + bytes / 8 / (kBandwidth / 8)));
  CHECK(exchange(", precision: mixed") == exactly(ring(2, bytes / 2)));
}

TEST_CASE("every flushing schedule: the simulators agree, and without a tie there is no line") {
  int exchanged = 0, schedules = 0;
  for (const ScheduleDef* def : schedules::catalog()) {
    if (!def->flushes || !def->trains || def->name == "csv") continue;
    if (def->vocabulary != VocabularyPasses::None) continue;  // No stage has the tied layers alone.
    const bool both_ways = def->placement == Placement::Bidirectional;
    const int stages = both_ways ? 4 : 4 * def->chunks.min;
    for (const char* overlap : {"run.overlap=true", "run.overlap=false"}) {
      CAPTURE(def->name);
      CAPTURE(overlap);
      const std::vector<std::string> sets{
          "model={builder: transformer, kind: gpt, layers: 14, hidden: 64, heads: 4, sequence: 16, vocabulary: 5000}",
          fmt::format("plan.stages={}", stages),
          "cluster.link.duplex=unshared",
          "cluster.devices=4",
          "run.micro_batches=12",
          "run.iterations=2",
          overlap,
          "run.transfers=eager"};
      const std::string name = def->name == "zb-v-auto" ? "{name: zb-v-auto, memory: 3}" : std::string(def->name);
      const Experiment with = scenario(name, 2, {0, 1}, true, sets);
      const CompiledExperiment p = compile(with);
      const Timeline ideal = run(p, "ideal").timeline;
      CHECK(test::difference(p.program, ideal, run(p, "simgrid").timeline) == "");
      CHECK(test::difference(p.program, ideal, run(p, "fluid").timeline) == "");
      const bool apart = devices_with(p, "embed") != devices_with(p, "lm_head");
      CHECK((to_text(p.program).find("TAR") != std::string::npos) == apart);
      exchanged += apart;
      std::vector<std::string> untied = sets;
      untied.front().replace(untied.front().size() - 1, 1, ", tied: false}");
      const CompiledExperiment without = compile(scenario(name, 2, {0, 1}, true, untied));
      CHECK(to_text(without.program).find("TAR") == std::string::npos);
      CHECK_FALSE(test::has_ties(without.plan));
      ++schedules;
    }
  }
  CHECK(schedules >= 2 * 20);
  CHECK(exchanged >= 2 * 10);
}

}  // namespace stagecraft::tied_test
