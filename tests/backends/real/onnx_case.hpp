#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "sim/core/random.hpp"
#include "sim/experiment/scenario.hpp"
#include "tests/backends/real/oracle.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/files.hpp"

// Networks of ONNX files that really run: their losses against plain loops, and training in stages against training
// without stages.

namespace stagecraft::test {

/// The model of an ONNX file in double precision; `more` are further fields of the builder.
inline ModelGraph onnx_model(const std::string& bytes, const std::string& more = "") {
  const std::string network = own_file("network.onnx", bytes);
  return build_model(load_model_file(own_file(
      "network.yaml", fmt::format("schema: model/1\nbuilder: onnx\nonnx: {}\nprecision: fp64\n{}", network, more))));
}

/// The weights of a stage by the names of their layers.
struct NamedWeights {
  const real::StageNet& net;
  const Workload& workload;
  const std::vector<double>& numbers;

  /// The array that an operation of a layer owns; `index` counts the arrays of the layer.
  const double* array(const std::string& layer, int index = 0) const {
    for (const real::Node& n : net.nodes)
      if (n.owns_weights && workload.layers[LayerId{n.layer}].name == layer && index-- == 0)
        return numbers.data() + n.weights;
    FAIL(layer);
    return nullptr;
  }
};

/// A stage for each part of the layers, cut where `cuts` says.
inline Plan cut_at(const ModelGraph& model, const std::vector<std::string>& cuts, int micro_batches, int size) {
  Plan plan;
  plan.mini_batch = micro_batches * size;
  for (const LayerId l : model.layers.ids()) {
    const bool starts = std::find(cuts.begin(), cuts.end(), model.layers[l].name) != cuts.end();
    if (starts || plan.stages.empty()) {
      Stage& stage = plan.stages.emplace_back();
      stage.name = fmt::format("s{}", plan.stage_count() - 1);
      stage.place_on({DeviceId{plan.stage_count() - 1}});
      stage.micro_batch_size = size;
    }
    plan.stages[StageId{plan.stage_count() - 1}].shape.layers.push_back(l);
  }
  connect(plan, model);
  return plan;
}

/// Compares the loss of a micro-batch with `loss_of(weights, data)`.
template <class LossOf>
void check_loss(const ModelGraph& model, int samples, LossOf loss_of) {
  const Training training = training_of(OptimizerKind::Sgd, 0.01);
  const Plan plan = cut_at(model, {}, 1, samples);
  const Workload workload = make_workload(model, plan, {}, training);
  const real::StageNet net = real::compile_stage(workload, StageId{0}, 8);
  std::vector<double> weights = real::initial_weights(net, workload, false);
  Rng rng(3, "weights");  // Biases and scales are 0 and 1 at the start, which would hide them.
  for (double& w : weights) w += rng.uniform(-0.2, 0.2);
  const auto kernels = cpu::make_kernels(8);
  real::DeviceMemory memory(*kernels);
  const auto data = get_from(tasks::catalog(), "task", "random").make(workload.task, training.seed);
  real::Array on_device(memory, 1, net.weights, real::Use::Weights);
  kernels->upload(weights, on_device.data());
  real::NetRun run(net, memory, *data);
  real::Activations activations;
  run.forward({.first = 0, .count = samples, .mini_batch = samples}, on_device.data(), false, activations);
  const double loss = loss_of(NamedWeights{net, workload, weights}, *data);
  CHECK(run.loss(activations.losses) == doctest::Approx(loss).epsilon(1e-12));
}

/// Trains in stages that begin at `cuts` and in one stage, and compares losses and weights bit by bit.
inline void check_stages(const ModelGraph& model, const char* schedule, const std::vector<std::string>& cuts) {
  CAPTURE(schedule);
  const Plan plan = cut_at(model, cuts, 4, 2);
  CHECK(plan.stage_count() == std::ssize(cuts) + 1);
  const Training training = training_of(OptimizerKind::Adam, 0.01);
  const WeightsRule& rule = policy("flush");
  const RealRun run = really_run(real_program(schedule, plan, rule, 3), model, plan, rule, training);
  const Expected expected = sequential(model, training, 4, 2, 3);
  CHECK(run.learnt().losses == expected.losses);
  std::vector<double> joined;
  for (const auto& stage : run.learnt().weights) joined.insert(joined.end(), stage.begin(), stage.end());
  CHECK(joined == expected.weights[StageId{0}]);
}

}  // namespace stagecraft::test
