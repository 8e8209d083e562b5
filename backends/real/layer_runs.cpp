#include "backends/real/layer_runs.hpp"

#include <algorithm>

#include "sim/core/numbers.hpp"

namespace stagecraft::real {
double& NodeTimes::of(Part part, std::size_t node) {
  return (part == Part::Forward ? forward : part == Part::InputGradient ? input_gradient : weight_gradient)[node];
}

LayerRuns::LayerRuns(const ProfileRequest& request, int samples, Kernels& kernels)
    : workload_(as_one_stage(request.workload)),
      samples_(samples),
      kernels_(kernels),
      memory_(kernels),
      net_(compile_stage(workload_, StageId{0}, kernels.width())) {
  const Training& training = workload_.training;
  workload_.task.mini_batch = samples;
  data_ = get_from(tasks::all(), "task", training.task).make(workload_.task, training.seed);
  weights_ = Array(memory_, 1, net_.weights, Use::Weights);
  sum_ = Array(memory_, 1, net_.weights, Use::Gradients);
  kernels_.upload(initial_weights(net_, workload_, false), weights_.data());
  kernels_.zero(sum_.data(), static_cast<std::size_t>(net_.weights) * kernels_.width());
}

void LayerRuns::once(Stopwatch* watch) {
  const NetRun run(net_, memory_, *data_, watch);
  // Other samples each time, as in training: what was looked up once is cheaper the second time.
  const Samples samples{samples_ * round_++, samples_, samples_, false};
  Activations a;
  run.forward(samples, weights_.data(), true, a);
  run.backward(samples, weights_.data(), true, sum_.data(), a);
}

void LayerRuns::file(NodeTimes times, LayerReadings& readings) const {
  for (std::size_t n = 0; n < net_.nodes.size();) {
    const int layer = net_.nodes[n].layer;
    double f = 0, i = 0, w = 0;
    for (; n < net_.nodes.size() && net_.nodes[n].layer == layer; ++n)
      f += times.forward[n], i += times.input_gradient[n], w += times.weight_gradient[n];
    Readings& r = readings[signature(workload_.layers[layer].operations, workload_.precision)];
    r.forward.push_back(f);
    if (i > 0) r.input_gradient.push_back(i);  // None where it would be that of data.
    r.weight_gradient.push_back(w);
    r.total.push_back(f + i + w);
  }
}

void put_layers(const LayerReadings& readings, int samples, Profile& profile) {
  for (const auto& [name, r] : readings) {
    const double middle = median(r.total);
    profile.layers.push_back({name, samples, Seconds{median(r.forward)}, Seconds{median(r.input_gradient)},
                              Seconds{median(r.weight_gradient)},
                              middle > 0 ? (quantile(r.total, 0.75) - quantile(r.total, 0.25)) / 2 / middle : 0});
  }
}

}  // namespace stagecraft::real
