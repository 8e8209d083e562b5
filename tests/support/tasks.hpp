#pragma once

#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft::test {

/// The devices of the tasks of one layer (a weight gradient on none, -1: it has no weights), and bytes of a sample:
/// its output, and what its forward keeps for its input gradient; the input that its weight gradient needs is extra.
struct TaskCosts {
  int forward, input_gradient, weight_gradient;
  double output = 1, saved = 0;
};

struct Tasks {
  Plan plan;
  std::vector<StageId> forward, input_gradient, weight_gradient;  ///< By layer; not valid where it has no such task.
};

/// A chain of layers with all their tasks and updates, `micro_batches` of one sample in an iteration.
inline Tasks tasks_of(const std::vector<TaskCosts>& places, int micro_batches) {
  Tasks t;
  t.plan.mini_batch = micro_batches;
  const int layers = static_cast<int>(places.size());
  const auto add = [&](int layer, StageTask task, int device, int size = 1) {
    Stage stage;
    stage.shape.layers = {LayerId{layer}};
    stage.task = task;
    stage.place_on({DeviceId{device}});
    stage.micro_batch_size = size;
    t.plan.stages.push_back(stage);
    return StageId{t.plan.stage_count() - 1};
  };
  // A forward makes its output and what its own layer keeps, an input gradient one array for each layer.
  const auto array = [&](StageId from, StageId to) {
    const Stage& maker = t.plan.stage(from);
    const LayerId layer = t.plan.stage(to).shape.layers.front();
    if (maker.task == StageTask::Forward) return layer == maker.shape.layers.front() ? 0 : 1;
    return maker.task == StageTask::InputGradient ? static_cast<int>(layer.value) : -1;
  };
  const auto edge = [&](StageId from, StageId to, double bytes) {
    if (from.valid() && to.valid() && bytes > 0) t.plan.edges.push_back({from, to, Bytes{bytes}, array(from, to)});
  };
  for (int l = 0; l < layers; ++l) {
    const TaskCosts& place = places[l];
    t.forward.push_back(add(l, StageTask::Forward, place.forward));
    t.input_gradient.push_back(l > 0 ? add(l, StageTask::InputGradient, place.input_gradient) : StageId{});
    const bool learns = place.weight_gradient >= 0;
    t.weight_gradient.push_back(learns ? add(l, StageTask::WeightGradient, place.weight_gradient) : StageId{});
  }
  for (int l = 0; l < layers; ++l) {
    const auto at = static_cast<std::size_t>(l);
    const TaskCosts& place = places[at];
    const bool last = l + 1 == layers;
    if (l > 0) {
      edge(t.forward[at - 1], t.forward[at], places[at - 1].output);
      edge(t.forward[at - 1], t.weight_gradient[at], places[at - 1].output);
    }
    const StageId source = last ? t.forward[at] : t.input_gradient[at + 1];
    edge(source, t.input_gradient[at], place.output + (last ? place.saved : 0));
    edge(source, t.weight_gradient[at], place.output);
    if (!last) edge(t.forward[at], t.input_gradient[at], place.saved);
    if (!t.weight_gradient[at].valid()) continue;
    const StageId update = add(l, StageTask::Update, place.weight_gradient, micro_batches);
    edge(t.weight_gradient[at], update, 1);
    if (place.forward != place.weight_gradient)
      edge(update, add(l, StageTask::TakeWeights, place.forward, micro_batches), 1);
    if (l > 0 && place.input_gradient != place.weight_gradient && place.input_gradient != place.forward)
      edge(update, add(l, StageTask::TakeWeights, place.input_gradient, micro_batches), 1);
  }
  return t;
}

}  // namespace stagecraft::test
