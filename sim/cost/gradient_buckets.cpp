// Divides the gradients of a stage into buckets, and says after which share of the backward each is complete, for the
// sums of gradients of a plan.

#include "sim/cost/gradient_buckets.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

/// What the ops of a stage spend on one layer.
struct LayerShare {
  Seconds backward, weight_gradient;
  DeviceParameters parameters;
};

LayerShare times_of(const CostTable& costs, LayerId id, const StageShape& stage, DeviceTypeId type, const Load& load) {
  const EachPass<PassCost> p = costs.passes(id, LayerShapes(stage, costs.model()).shape_of(id), type, load);
  const TimeByClass backward = stage.recomputes_all() ? p.backward.time : p.backward.time + p.recompute.time;
  const Written written = written_collectives(costs.rules(), stage);
  return {in_op(backward, written).total(), in_op(p.weight_gradient.time, written).total(), {}};
}

/// From the last layer to the first. Layers that share parameters have their gradient when the first of them has its.
std::vector<LayerShare> layers_backwards(const CostTable& costs, const StageShape& stage, DeviceTypeId type,
                                         const Load& load) {
  std::vector<LayerShare> list;
  std::vector<LayerId> until;
  DeviceParameters before;
  for (const LayerId id : stage.layers) {
    list.push_back(times_of(costs, id, stage, type, load));
    until.push_back(id);
    const DeviceParameters now = device_parameters(until, stage.degrees, costs.model());
    list.back().parameters = {now.dense - before.dense, now.experts - before.experts};
    before = now;
  }
  std::reverse(list.begin(), list.end());
  return list;
}

/// The share of the time of a pass after which `count` gradients of a class are there.
double share_after(const std::vector<LayerShare>& layers, double DeviceParameters::*of_class, double count,
                   Seconds LayerShare::*pass) {
  Seconds total, then;
  for (const LayerShare& layer : layers) total += layer.*pass;
  if (total.value <= 0) return 1;
  for (const LayerShare& layer : layers) {
    const double here = layer.parameters.*of_class;
    if (here >= count) return std::min(1.0, (then + (count / here) * (layer.*pass)) / total);
    count -= here;
    then += layer.*pass;
  }
  return 1;
}

}  // namespace

std::vector<GradientBucket> gradient_buckets(const CostTable& costs, const StageShape& stage, DeviceTypeId type,
                                             const Load& load, const BucketRule& rule, double gradient_bytes) {
  const std::vector<LayerShare> layers = layers_backwards(costs, stage, type, load);
  const double ranks = stage.degrees.replicas * stage.degrees.context;
  const double limit =
      std::max({rule.parameters, rule.parameters_per_rank * ranks, rule.gradients.value / gradient_bytes});
  std::vector<GradientBucket> buckets;
  for (double DeviceParameters::*of_class : {&DeviceParameters::dense, &DeviceParameters::experts}) {
    double total = 0;
    for (const LayerShare& layer : layers) total += layer.parameters.*of_class;
    const int count = total > 0 ? std::max(1, static_cast<int>(std::ceil(total / limit * (1 - 1e-12)))) : 0;
    for (int b = 0; b < count; ++b) {
      const double end = b + 1 == count ? total : (b + 1) * limit;
      GradientBucket bucket{.parameters = {},
                            .after_backward = share_after(layers, of_class, end, &LayerShare::backward),
                            .after_weights = share_after(layers, of_class, end, &LayerShare::weight_gradient)};
      bucket.parameters.*of_class = end - b * limit;
      buckets.push_back(bucket);
    }
  }
  std::stable_sort(buckets.begin(), buckets.end(), [](const GradientBucket& a, const GradientBucket& b) {
    return a.after_backward < b.after_backward;
  });
  return buckets;
}

}  // namespace stagecraft
