#pragma once

#include <string>
#include <vector>

#include "sim/model/model_graph.hpp"
#include "sim/plan/plan.hpp"
#include "sim/training/training.hpp"

namespace stagecraft::test {

inline Layer layer_of(std::string name, std::vector<LayerId> inputs, std::vector<Operation> operations, double width) {
  Layer layer;
  layer.name = std::move(name);
  layer.inputs = std::move(inputs);
  for (const Operation& op : operations) layer.parameters += op.parameters();
  const Operation& last = operations.back();
  if (!last.is_loss()) layer.output = Bytes{last.rows * last.columns * width};
  layer.operations = std::move(operations);
  return layer;
}

/// Dense layers with an activation function `bend` after each but the last, then a loss: input, d0, d1, ..., loss.
inline ModelGraph dense_net(const std::vector<int>& widths, OperationKind bend = OperationKind::Tanh,
                            OperationKind loss = OperationKind::MeanSquare, double width = 8) {
  ModelGraph model;
  model.name = "net";
  model.precision = {width, width, 2 * width, width};
  model.layers.push_back(
      layer_of("input", {}, {{.kind = OperationKind::Input, .rows = 1, .columns = widths.front()}}, width));
  for (std::size_t i = 1; i < widths.size(); ++i) {
    std::vector<Operation> ops{
        {.kind = OperationKind::Linear, .inputs = {-1}, .columns = widths[i], .inner = widths[i - 1]}};
    if (i + 1 < widths.size()) ops.push_back({.kind = bend, .inputs = {0}, .columns = widths[i]});
    model.layers.push_back(
        layer_of("d" + std::to_string(i - 1), {LayerId{static_cast<std::int64_t>(i) - 1}}, ops, width));
  }
  model.layers.push_back(layer_of("loss", {LayerId{static_cast<std::int64_t>(widths.size()) - 1}},
                                  {{.kind = loss, .inputs = {-1}, .columns = widths.back()}}, width));
  return model;
}

/// A dense_net() of `stages` dense layers; all widths between input and output are `inner`.
inline ModelGraph deep_net(int stages, int inputs = 16, int inner = 32, int outputs = 4,
                           OperationKind bend = OperationKind::Tanh, OperationKind loss = OperationKind::MeanSquare,
                           double width = 8) {
  std::vector<int> widths(static_cast<std::size_t>(stages) + 1, inner);
  widths.front() = inputs;
  widths.back() = outputs;
  return dense_net(widths, bend, loss, width);
}

/// Bytes that flow between stages, one edge for each pair that a layer joins, in the order of the stages.
inline void connect(Plan& plan, const ModelGraph& model) {
  IdVector<LayerId, StageId> stage_of(model.layers.size());
  for (const StageId s : plan.stages.ids())
    for (const LayerId l : plan.stage(s).shape.layers) stage_of[l] = s;
  for (const StageId from : plan.stages.ids())
    for (const StageId to : plan.stages.ids()) {
      IdVector<LayerId, bool> crosses(model.layers.size(), false);
      for (const LayerId l : model.layers.ids())
        for (const LayerId input : model.layers[l].inputs)
          if (stage_of[l] == to && stage_of[input] == from && from != to) crosses[input] = true;
      Bytes bytes;
      for (const LayerId l : crosses.ids())
        if (crosses[l]) bytes += model.layers[l].output;
      if (bytes.value > 0) plan.edges.push_back({from, to, bytes});
    }
}

/// One dense layer a stage, one device each; the input goes with the first and the loss with the last.
inline Plan stage_each(const ModelGraph& model, int micro_batches, int micro_batch_size = 2) {
  Plan plan;
  const int dense = static_cast<int>(model.layers.size()) - 2;
  plan.mini_batch = micro_batches * micro_batch_size;
  for (int s = 0; s < dense; ++s) {
    Stage& stage = plan.stages.emplace_back();
    stage.name = "s" + std::to_string(s);
    if (s == 0) stage.shape.layers.emplace_back(0);
    stage.shape.layers.emplace_back(s + 1);
    if (s + 1 == dense) stage.shape.layers.emplace_back(dense + 1);
    stage.place_on({DeviceId{s}});
    stage.micro_batch_size = micro_batch_size;
  }
  connect(plan, model);
  return plan;
}

inline Training training_of(OptimizerKind kind, double learning_rate, std::string task = "random") {
  Training training;
  training.task = std::move(task);
  training.optimizer.kind = kind;
  training.optimizer.learning_rate = learning_rate;
  return training;
}

/// input -> two or three branches of dense layers -> concat -> dense -> loss. Stages: trunk, branches, join.
struct Branched {
  ModelGraph model;
  Plan plan;
};

inline Branched branched(int branches, int micro_batches) {
  Branched b;
  b.model.precision = {8, 8, 16, 8};
  auto& layers = b.model.layers;
  const auto dense = [&](std::string name, int from, int inputs, int outputs) {
    layers.push_back(layer_of(std::move(name), {LayerId{from}},
                              {{.kind = OperationKind::Linear, .inputs = {-1}, .columns = outputs, .inner = inputs},
                               {.kind = OperationKind::Tanh, .inputs = {0}, .columns = outputs}},
                              8));
    return static_cast<int>(layers.size()) - 1;
  };
  const auto stage = [&](std::vector<int> ids) {
    Stage& s = b.plan.stages.emplace_back();
    for (const int id : ids) s.shape.layers.emplace_back(id);
    s.place_on({DeviceId{b.plan.stage_count() - 1}});
    s.micro_batch_size = 2;
  };
  layers.push_back(layer_of("input", {}, {{.kind = OperationKind::Input, .columns = 6}}, 8));
  const int trunk = dense("trunk", 0, 6, 8);
  stage({0, trunk});
  Operation concat{.kind = OperationKind::Concat, .columns = branches * 5};
  std::vector<LayerId> ends;
  for (int i = 0; i < branches; ++i) {
    const int low = dense("low" + std::to_string(i), trunk, 8, 7), high = dense("high" + std::to_string(i), low, 7, 5);
    stage({low, high});
    ends.emplace_back(high);
    concat.inputs.push_back(-1 - i);
  }
  layers.push_back(layer_of("concat", ends, {concat}, 8));
  const int join = static_cast<int>(layers.size()) - 1;
  const int head = dense("head", join, branches * 5, 3);
  layers.push_back(
      layer_of("loss", {LayerId{head}}, {{.kind = OperationKind::MeanSquare, .inputs = {-1}, .columns = 3}}, 8));
  stage({join, head, head + 1});
  b.plan.mini_batch = 2 * micro_batches;
  connect(b.plan, b.model);
  return b;
}

}  // namespace stagecraft::test
