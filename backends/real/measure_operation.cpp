#include "backends/real/measure_operation.hpp"

#include <algorithm>

#include "sim/program/lower.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft::real {
namespace {

Layer layer_of(const char* name, std::vector<LayerId> inputs, Operation operation) {
  Layer layer;
  layer.name = name;
  layer.inputs = std::move(inputs);
  layer.parameters = operation.parameters();
  layer.operations = {std::move(operation)};
  return layer;
}

/// Four numbers through one small layer.
ModelGraph smallest_model() {
  ModelGraph model;
  model.layers.push_back(layer_of("input", {}, {.kind = OperationKind::Input, .columns = 4}));
  model.layers.push_back(
      layer_of("dense", {LayerId{0}}, {.kind = OperationKind::Linear, .inputs = {-1}, .columns = 4, .inner = 4}));
  model.layers.push_back(
      layer_of("loss", {LayerId{1}}, {.kind = OperationKind::MeanSquare, .inputs = {-1}, .columns = 4}));
  return model;
}

}  // namespace

Seconds measure_operation(const std::function<Timeline(const Program&, const Work&)>& run) {
  constexpr int kMicroBatches = 64, kIterations = 8;
  const ModelGraph model = smallest_model();
  Plan plan = chain_plan(1, 1, kMicroBatches);
  plan.stages.front().layers = {LayerId{0}, LayerId{1}, LayerId{2}};
  const StageCosts costs = uniform_costs(plan, {});
  const Schedule schedule = build_schedule(get_from(schedules::all(), "schedule", "1f1b"),
                                           {.plan = plan, .costs = costs, .iterations = kIterations});
  const WeightsRule& flush = get_from(weights::all(), "weights policy", "flush").paper;
  LoweringOptions options;
  options.iterations = kIterations;
  const Program program = lower(schedule, plan, costs, flush, options);
  Training training;
  training.task = "random";
  const Timeline t = run(program, {model, plan, flush, training});
  std::vector<double> times;
  for (std::size_t n = program.size() / 2; n < program.size(); ++n) times.push_back(t.end[n] - t.start[n]);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return Seconds{times[times.size() / 2]};
}

}  // namespace stagecraft::real
