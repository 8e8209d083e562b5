// Piper with tensor degrees to choose from, against every division of a small model.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::piper_tensor_test {
namespace {

constexpr int kDevices = 4, kMicroBatches = 4;
constexpr double kLink = 50e9;

std::string scenario(const std::string& plan, const std::string& software = "software: plain\n") {
  return fmt::format(R"(schema: scenario/1
model: {{builder: transformer, kind: gpt, layers: 3, hidden: 512, heads: 8, feed_forward: 2048, sequence: 256,
         vocabulary: 1024, tied: false, precision: mixed}}
cluster:
  generator: nvlink_pods
  types: {{gpu: {{peak: 10 TFLOP/s, efficiency: 1, memory: 16 GiB, memory_bandwidth: 1 TB/s, launch: 0 s}}}}
  nodes: [{{name: node, count: 1, gpus: {}, type: gpu, inside: nvswitch}}]
  links: {{nvlink: {{bandwidth: 50 GB/s, latency: 1 us}}, nic: {{bandwidth: 50 GB/s, latency: 0 s}}}}
plan: {{planner: piper, micro_batch_size: 4, cuts: listed, recompute: none{}}}
run: {{schedule: 1f1b, micro_batches: {}, iterations: 1}}
{})",
                     kDevices, plan, kMicroBatches, software);
}

PlannedExperiment planned(const std::string& text) {
  return plan_experiment(load_experiment(test::own_file("piper_tensor_test.yaml", text), {}));
}

/// Piper's time of the layers first..last as a stage (NeurIPS 2021, section 3), written independently.
double seconds_of(const Experiment& e, int first, int last, int tensor, int data) {
  const ModelGraph& model = *e.model;
  const DeviceTypeId type = e.cluster->devices[DeviceId{0}].type;
  double seconds = 0;
  for (int l = first; l <= last; ++l) {
    StageShape shape;
    shape.layers = {LayerId{l}};
    shape.degrees.tensor = tensor;
    const EachPass<PassCost> p = e.costs->passes(LayerId{l}, shape, type, whole_samples(4));
    const DeviceParameters parameters = device_parameters(shape.layers, shape.degrees, model);
    seconds += (p.forward.time + p.backward.time).total().value / data;
    seconds += 4.0 * (data - 1) / data * parameters.dense * model.precision.weight / kMicroBatches / kLink;
  }
  const auto crossing = [&](int layer) { return 2 * model.layers[LayerId{layer}].output.value * 4 / tensor / data; };
  if (first > 0) seconds += crossing(first - 1) / kLink;
  if (last + 1 < std::ssize(model.layers)) seconds += crossing(last) / kLink;
  return seconds;
}

/// The least time of the slowest stage, over all cuts, tensor degrees and numbers of replicas.
double least_time(const Experiment& e, const std::vector<int>& degrees) {
  const int layers = static_cast<int>(std::ssize(e.model->layers));
  const std::function<double(int, int)> from = [&](int first, int devices) {
    if (first == layers) return 0.0;
    double best = 1e300;
    for (int last = first; last < layers; ++last)
      for (const int tensor : degrees)
        for (const int data : {1, 2, 4})
          if (tensor * data <= devices)
            best = std::min(
                best, std::max(seconds_of(e, first, last, tensor, data), from(last + 1, devices - tensor * data)));
    return best;
  };
  return from(0, kDevices);
}

}  // namespace

TEST_CASE("piper finds the best tensor degree of each stage") {
  for (const std::vector<int>& degrees : {std::vector<int>{1}, {2}, {1, 2}, {1, 2, 4}}) {
    std::string list;
    for (const int d : degrees) list += fmt::format("{}{}", list.empty() ? "" : ", ", d);
    CAPTURE(list);
    const PlannedExperiment p = planned(scenario(fmt::format(", tensor: [{}]", list)));
    CHECK(p.report.predicted.value == doctest::Approx(least_time(p.experiment, degrees)).epsilon(1e-9));
    for (const Stage& stage : p.plan.stages) {
      CHECK(std::count(degrees.begin(), degrees.end(), stage.shape.degrees.tensor) == 1);
      CHECK(std::ssize(stage.all_devices()) == stage.shape.degrees.tensor * stage.replicas());
    }
    CHECK(run(compile(p), "ideal").report.period.value > 0);
  }
}

TEST_CASE("tensor degrees that cannot be are refused with a reason") {
  const auto refusal = [](const std::string& text) {
    try {
      planned(text);
    } catch (const InputError& e) {
      return e.problems().front().message;
    }
    return std::string("accepted");
  };
  CHECK(refusal(scenario(", tensor: [1, 2]", "")) == "only a software stack says what tensor parallelism costs");
  CHECK(refusal(scenario(", tensor: [1, 3]")).find("heads") != std::string::npos);
  CHECK(refusal(scenario(", tensor: []")) == "there is no degree to choose from");
}

}  // namespace stagecraft::piper_tensor_test
