// Intervals of predicted times: what share of the published runs they hold.

#include "sim/published/error_classes.hpp"

#include <doctest/doctest.h>

#include <map>
#include <tuple>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "tests/sim/published/predicted_sets.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::error_classes_test {
namespace {

using test::predicted_sets;

const ErrorDistribution& distribution() {
  static const ErrorDistribution distances(predicted_sets());
  return distances;
}

Experiment experiment(const std::string& device, const std::string& software = "megatron-bridge",
                      const std::string& model = "llama-3-8b") {
  const std::string file = test::own_file(
      "error_classes_test.yaml",
      "schema: scenario/2\nmodel: " + model + "\ncluster: {generator: nvlink_pods, types: {gpu: {preset: " + device +
          ", memory: 1000 GB}}, nodes: [{name: n, count: 1, gpus: 2, type: gpu, inside: nvswitch, nics: each}], "
          "links: {nvlink: {bandwidth: 450 GB/s, latency: 1 us}, nic: {bandwidth: 50 GB/s, latency: 5 us}}}\n"
          "software: " +
          software +
          "\nplan: {planner: balanced, stages: 2, micro_batch_size: 1}\n"
          "run: {schedule: 1f1b, micro_batches: 4}\n");
  return load_experiment(file, {});
}

}  // namespace

TEST_CASE("an interval holds the share of runs that it claims when it is made without the run") {
  // An interval covers the ceil(0.8 n) closest of n runs in a class; a wrong rank covers fewer, or every run.
  std::map<std::tuple<std::string, NumberFormat, std::string, bool, bool>, std::pair<int, int>> by_class;
  int total = 0, covered = 0;
  for (const PredictionSet& set : predicted_sets())
    for (const MeasuredRun& m : set.runs) {
      const ErrorClass c = error_class(m);
      const auto interval = distribution().interval_without(c, m);
      if (!interval) continue;
      const bool is_covered = prediction_distance(m) <= interval->half_width;
      auto& [runs, count] = by_class[{c.device, c.format, c.software, c.small, c.experts}];
      ++runs, count += is_covered;
      ++total, covered += is_covered;
    }
  CHECK(total >= 1000);
  CHECK(covered >= kIntervalCoverage * total);
  CHECK(covered <= (kIntervalCoverage + 0.02) * total);
  int large_classes = 0;
  for (const auto& one : by_class) {
    const auto& counts = one.second;
    if (counts.first < 6) continue;  // A run left out of five leaves too few in the format, so others count too.
    ++large_classes;
    CAPTURE(std::get<0>(one.first));
    CAPTURE(counts.first);
    CHECK(counts.second >= kIntervalCoverage * counts.first);
    CHECK(counts.second <= kIntervalCoverage * counts.first + 1);
  }
  CHECK(large_classes == (test::all_trials() ? 34 : 22));
}

TEST_CASE("classes differ by device type, format, size and experts") {
  const auto interval = [](const ErrorClass& c, bool every_format = false) {
    return *distribution().interval(c, every_format);
  };
  CHECK(interval({"a100-80", NumberFormat::Bf16, "megatron-deepspeed", false, false}).runs == 66);
  CHECK(interval({"a100-80", NumberFormat::Bf16, "megatron-deepspeed", true, false}).runs == 872);
  const PredictionInterval dense = interval({"b200", NumberFormat::Bf16, "megatron-no-overlap", false, false});
  const PredictionInterval experts = interval({"b200", NumberFormat::Bf16, "megatron-no-overlap", false, true});
  CHECK(dense.runs == 19);
  CHECK(experts.runs == 6);
  CHECK(experts.half_width > dense.half_width);
  // No run is in mxfp8: all formats count.
  CHECK(interval({"b200", NumberFormat::MxFp8, "megatron-no-overlap", false, false}).runs == 19);
  CHECK(interval({"b200", NumberFormat::Bf16, "megatron-no-overlap", false, false}, true).runs == 19);
  // Another framework on the same device has no runs in this class.
  CHECK_FALSE(distribution().interval({"b200", NumberFormat::Bf16, "torchtitan", false, false}));
  CHECK_FALSE(distribution().interval({"h20", NumberFormat::Bf16, "megatron-core", false, false}));
}

TEST_CASE("the interval of five runs is the largest distance, and of nine the eighth") {
  // ceil(0.8 x 6) = 5, ceil(0.8 x 10) = 8.
  PredictionSet set = predicted_sets().front();
  set.runs.resize(9, set.runs.front());
  for (int i = 0; i < 9; ++i) {
    set.runs[i] = set.runs.front();
    set.runs[i].measured = (1 + 0.01 * (i + 1)) * set.runs[i].predicted.time;
  }
  const ErrorClass c = error_class(set.runs.front());
  CHECK(ErrorDistribution(std::vector{set}).interval(c)->half_width == doctest::Approx(0.08));
  set.runs.resize(5);
  CHECK(ErrorDistribution(std::vector{set}).interval(c)->half_width == doctest::Approx(0.05));
}

TEST_CASE("a class of measured runs is that of the experiment that simulates it") {
  for (const char* name : {"zero-bubble", "simumax-deepseek"}) {
    const MeasuredRun& m = test::predicted_set(name).runs.front();
    const Experiment e = experiment_of(m, load_accelerator("topologies/devices/" + m.device + ".yaml"));
    const ErrorClass of_run = error_class(m), of_experiment = error_class(e, DeviceTypeId{0});
    CHECK(of_run.device == of_experiment.device);
    CHECK(of_run.format == of_experiment.format);
    CHECK(of_run.software == of_experiment.software);
    CHECK(of_run.small == of_experiment.small);
    CHECK(of_run.experts == of_experiment.experts);
  }
}

namespace {

std::vector<std::string> lines_of(const std::string& text) { return split(text, '\n'); }

/// Device types all of whose runs are in the sets that every test predicts.
bool is_complete(const std::string& line) { return line.starts_with("a100-80,") || line.starts_with("h100-hbm2e,"); }

}  // namespace

TEST_CASE("the recorded intervals follow from the simulated runs") {
  const std::string recorded = read_file("scenarios/predictions/intervals.csv");
  if (test::all_trials()) {
    CHECK(intervals_csv(predicted_sets(), true) == recorded);  // stagecraft reproduce predictions --intervals
    return;
  }
  const auto complete = [](const std::string& text) {
    std::vector<std::string> lines = lines_of(text);
    std::erase_if(lines, [](const std::string& line) { return !is_complete(line); });
    return lines;
  };
  CHECK(complete(recorded).size() >= 3);
  CHECK(complete(intervals_csv(predicted_sets(), false)) == complete(recorded));
}

TEST_CASE("only times from shapes have an interval, and a type that is not calibrated has a wide one") {
  const auto calibrated = prediction_interval(experiment("h100-sxm"));
  REQUIRE(calibrated);
  CHECK(calibrated->calibrated);
  CHECK(calibrated->runs == 14);
  const auto other = prediction_interval(experiment("h20"));
  REQUIRE(other);
  CHECK_FALSE(other->calibrated);
  CHECK(other->half_width > 2 * calibrated->half_width);
  // No run with these facts was published on the type: they are as far off as other frameworks are.
  for (const char* software : {"plain", "{base: megatron-bridge, attention: fa1_triton}"}) {
    CAPTURE(software);
    const auto unknown = prediction_interval(experiment("a100-80", software));
    REQUIRE(unknown);
    CHECK(unknown->half_width > 0.2);
    CHECK(unknown->class_name.find("priced with the facts of another framework") != std::string::npos);
  }
  CHECK_FALSE(prediction_interval(experiment("h100-sxm", "none")));
  CHECK_FALSE(prediction_interval(
      experiment("h100-sxm", "plain", "{builder: uniform, layers: 4, forward: 1 ms, backward: 2 ms, output: 1 MB}")));
}

TEST_CASE("an interval is written behind the time") {
  CHECK(to_text(Seconds{0.058}, PredictionInterval{.half_width = 0.05, .class_name = {}}) == "58 ms ± 5.0 %");
  CHECK(to_text(Seconds{0.058}, PredictionInterval{.half_width = 0.123, .class_name = {}}) == "58 ms ± 12 %");
  CHECK(to_text(Seconds{0.058}, PredictionInterval{.half_width = 2.6, .class_name = {}}) ==
        "58 ms (up to 3.6 times as long)");  // No time is 260 % shorter.
  CHECK(to_text(Seconds{0.058}, {}) == "58 ms");
}

}  // namespace stagecraft::error_classes_test
