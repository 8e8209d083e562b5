// Measured times of collectives in simulations, from a scenario to its times and notes.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include <cmath>

#include "sim/cluster/collective_curve.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::curves_test {
namespace {

/// Llama 3 8B, of which an array of one sample and two bytes a number has 8 KiB for each of its `sequence` tokens.
std::string scenario(const std::string& cluster, const std::string& plan, int layers = 4, int sequence = 8192,
                     const std::string& more = "software: plain\n", const std::string& run = {}) {
  return fmt::format(
      "schema: scenario/2\nmodel: {{base: llama-3-8b, override: {{layers: {}, sequence: {}}}}}\ncluster: {}\nplan: "
      "{{planner: balanced, stages: 1, {}}}\nrun: {{schedule: 1f1b, micro_batches: 2, iterations: 1{}}}\n{}",
      layers, sequence, cluster, plan, run, more);
}

CompiledExperiment compiled(const std::string& text) {
  return compile(load_experiment(test::own_file("curves_test.yaml", text), {}));
}

std::string on(const std::string& base, const std::string& more = "collectives: nccl-public") {
  return "{base: " + base + ", " + more + "}";
}

constexpr const char* kTensor = "group: {tensor: 8}";
constexpr double kMicro = 1e-6;

/// A layer has two all-reduces in its forward.
double all_reduce(const std::string& cluster, int sequence = 8192) {
  const auto tensor = [&](int layers) {
    return compiled(scenario(cluster, kTensor, layers, sequence)).costs.at(StageId{0}, 0).passes.forward.tensor.value;
  };
  return (tensor(4) - tensor(2)) / 4;
}

/// A curve of all-reduces among eight devices with two sizes, 32 and 128 MiB.
std::string two_sizes() {
  test::own_file("curves_test_two.yaml",
                 "schema: collectives/1\ntitle: t\nsource: s\ncurves:\n  - {system: mine, source: s, kind: "
                 "all_reduce, ranks: 8, nodes: 1, points: [[33554432, 300], [134217728, 900]]}\n");
  return on("hgx-h100-x2", "collectives: ./curves_test_two.yaml");
}

std::string notes(const std::string& text) {
  std::string lines;
  for (const std::string& line : remarks(compiled(text))) lines += line + "\n";
  return lines;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("an all-reduce of 64 MiB on the NVLink of an H100 node takes the time that was measured") {
  CHECK(all_reduce(on("hgx-h100-x2")) == doctest::Approx(324.7 * kMicro).epsilon(1e-9));
}

TEST_CASE("an iteration is longer by what its measured collectives are longer") {
  const CompiledExperiment with = compiled(scenario(on("hgx-h100-x2"), kTensor));
  const CompiledExperiment without = compiled(scenario("hgx-h100-x2", kTensor));
  const auto passes = [](const CompiledExperiment& c) {
    const EachPass<TimeByClass>& p = c.costs.at(StageId{0}, 0).passes;
    return 2 * (p.forward.tensor + p.backward.tensor).value;
  };
  for (const char* backend : {"ideal", "fluid"})
    CHECK(run(with, backend).report.length.value - run(without, backend).report.length.value ==
          doctest::Approx(passes(with) - passes(without)).epsilon(1e-9));
}

TEST_CASE("a size between two measured ones is interpolated; above them the last rate holds, below them the formula") {
  CHECK(all_reduce(two_sizes()) == doctest::Approx(std::sqrt(300. * 900) * kMicro).epsilon(1e-9));
  CHECK(all_reduce(two_sizes(), 32768) == doctest::Approx(1800 * kMicro).epsilon(1e-9));
  // alpha, hop, bus and root of topologies/devices/h100-sxm.yaml.
  const double bytes = 2048 * 8192;
  const double formula = 10e-6 + 7 * 1e-6 + 2 * 7 / 8.0 * bytes / 480e9 + 9.4e-9 * std::sqrt(bytes);
  CHECK(all_reduce(two_sizes(), 2048) == doctest::Approx(formula).epsilon(1e-9));
}

TEST_CASE("gradients of two nodes are summed in the measured time, which is less than a ring over the cards takes") {
  const auto sum = [](const std::string& cluster) {
    return compiled(scenario(cluster, "replicas: 16")).plan.reductions.front();
  };
  const Reduction measured = sum(on("dgx-h200-x2"));
  const auto curves = load_collective_curves("topologies/collectives/nccl-public.yaml");
  const CollectiveCurve* curve = find_curve(curves, CollectiveKind::AllReduce, {.ranks = 16, .ranks_per_node = 8});
  REQUIRE(curve->system == "2x8 H200, 8x400G");
  CHECK(measured.cost->value == doctest::Approx(curve->time_of(measured.bytes)->value).epsilon(1e-9));
  CHECK(*measured.cost < *sum("dgx-h200-x2").cost);
}

TEST_CASE("a slow link between the nodes is not measured away") {
  const std::string slow = "{base: dgx-h200-x2, override: {links.nic.bandwidth: 1 Gbit/s}, collectives: nccl-public}";
  const Reduction sum = compiled(scenario(slow, "replicas: 16")).plan.reductions.front();
  // Half of the array in each of two trips leaves a node over its eight cards.
  CHECK(sum.cost->value >= 2 * 0.5 * sum.bytes.value / (8 * 1e9 / 8));
}

TEST_CASE("notes say which collectives were measured, and which were not") {
  const std::string text = notes(scenario(on("hgx-h100-x2"), "replicas: 2, group: {tensor: 8}"));
  CHECK(has(text, "measured collectives: all_reduce among 8 devices on 1 node ('DGX H100'"));
  CHECK(has(text,
            "without a measured time, which the constants of the devices or the links price: all_reduce among 2 "
            "devices on 2 nodes"));
  CHECK(has(notes(scenario(two_sizes(), kTensor, 4, 2048)), "all_reduce among 8 devices on 1 node below 32 MiB"));
  CHECK(has(notes(scenario(on("hgx-h100-x2"), "replicas: 2", 4, 8192, "software: none\n")), "only a software stack"));
  CHECK(has(notes(scenario(on("hgx-h100-x2"), kTensor, 4, 8192, "software: plain\n", ", collectives: flows")),
            "messages on the links"));
  CHECK_FALSE(has(notes(scenario("hgx-h100-x2", kTensor)), "measured"));
}

TEST_CASE("curves that are not there, or of which two are the same, are refused") {
  const auto refusal = [](const std::string& cluster) {
    return test::input_error_of([&] { compiled(scenario(cluster, kTensor)); });
  };
  CHECK(has(refusal(on("hgx-h100-x2", "collectives: nccl-publik")), "nccl-public"));
  CHECK(has(refusal(on("hgx-h100-x2", "collectives: nccl-public, collective_systems: [DGX H101]")), "DGX H100"));
  CHECK(has(refusal(on("dgx-b200-x2")), "second environment"));
  CHECK_NOTHROW(compiled(
      scenario(on("dgx-b200-x2", "collectives: nccl-public, collective_systems: [8x B200, '2x8 B200 HGX, 8x400G NDR']"),
               kTensor)));
}

TEST_CASE("curves that were written are read back") {
  const auto curves = load_collective_curves("topologies/collectives/nccl-public.yaml");
  const auto again =
      load_collective_curves(test::own_file("curves_test_written.yaml", to_yaml(curves, "title", "a \"source\"")));
  REQUIRE(again.size() == curves.size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    CHECK(again[i].system == curves[i].system);
    CHECK(again[i].device == curves[i].device);
    REQUIRE(again[i].points.size() == curves[i].points.size());
    CHECK(again[i].points.back().time.value == doctest::Approx(curves[i].points.back().time.value).epsilon(1e-8));
  }
}

}  // namespace stagecraft::curves_test
