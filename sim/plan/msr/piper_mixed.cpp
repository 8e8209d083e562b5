// Piper's stages where devices differ: without tensor parallelism, so the devices from a stage on are the sum of their
// data degrees, and with one variant for a whole stage, which has to fit on every type that its replicas are of.

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/plan/msr/mixed.hpp"
#include "sim/plan/msr/piper.hpp"

namespace stagecraft::msr {
namespace {

/// The layers between two cuts, all in one variant.
struct Whole {
  std::vector<double> seconds;  ///< On each type.
  double bytes = 0, parameters = 0;
  MemoryUnits units{};

  double memory(int in_flight) const { return stage_memory(units, in_flight).total().value; }
};

class Stages {
 public:
  Stages(const std::vector<PiperInput>& inputs, const Cuts& cuts)
      : inputs_(inputs), first_(inputs.front()), cuts_(cuts) {}

  double seconds(int from, int to, const DeviceMix& mix, int devices_after) {
    const int variant = best_variant(from, to, mix, devices_after);
    return variant < 0 ? kInfinity : seconds_of(wholes_[variant], mix);
  }

  PiperStage stage_of(const MixedStage& mixed_stage, int devices_after) {
    const int variant = best_variant(mixed_stage.from, mixed_stage.to, mixed_stage.mix, devices_after);
    STAGECRAFT_CHECK(variant >= 0);
    PiperStage stage{mixed_stage.from, mixed_stage.to, 1, mixed_stage.mix.devices, {}, 0, mixed_stage.mix.of_type};
    stage.variants.assign(cuts_.layers_between(mixed_stage.from, mixed_stage.to).size(), variant);
    stage.memory = wholes_[variant].memory(in_flight(mixed_stage.mix, devices_after));
    return stage;
  }

 private:
  /// A replica has at most its share of all micro-batches in flight.
  int in_flight(const DeviceMix& mix, int devices_after) const {
    return std::min((devices_after + mix.devices + mix.devices - 1) / mix.devices, first_.micro_batches / mix.devices);
  }

  /// The fastest that fits; -1 when none does.
  int best_variant(int from, int to, const DeviceMix& mix, int devices_after) {
    if (first_.micro_batches % mix.devices != 0) return -1;
    if (std::pair{from, to} != known_) look_at(from, to);
    int best = -1;
    for (std::size_t v = 0; v < wholes_.size(); ++v) {
      if (wholes_[v].memory(in_flight(mix, devices_after)) > least_memory(mix)) continue;
      if (best < 0 || seconds_of(wholes_[v], mix) < seconds_of(wholes_[best], mix)) best = static_cast<int>(v);
    }
    return best;
  }

  double least_memory(const DeviceMix& mix) const {
    double smallest = kInfinity;
    for (std::size_t t = 0; t < inputs_.size(); ++t)
      if (mix.types >> t & 1) smallest = std::min(smallest, inputs_[t].memory);
    return smallest;
  }

  double seconds_of(const Whole& whole, const DeviceMix& mix) const {
    double slowest = 0;
    for (std::size_t t = 0; t < inputs_.size(); ++t)
      if (mix.types >> t & 1) slowest = std::max(slowest, whole.seconds[t]);
    const double d = mix.devices, reduced = 4.0 * (d - 1) * whole.parameters / d / first_.micro_batches;
    return (whole.bytes / d + reduced) / first_.bandwidth + slowest / d;
  }

  void look_at(int from, int to) {
    known_ = {from, to};
    const std::vector<int> layers = cuts_.layers_between(from, to);
    std::size_t variants = first_.layers[layers.front()].by_degree.at(1).size();
    for (const int layer : layers) variants = std::min(variants, first_.layers[layer].by_degree.at(1).size());
    wholes_.assign(variants, {.seconds = std::vector<double>(inputs_.size(), 0)});
    for (std::size_t v = 0; v < variants; ++v)
      for (const int layer : layers) add(wholes_[v], from, to, layer, v);
  }

  void add(Whole& whole, int from, int to, int layer, std::size_t v) {
    const auto outside = [&](int other) { return cuts_.has(from, other) || !cuts_.has(to, other); };
    const auto &inputs = first_.graph.previous[layer], &users = first_.graph.next[layer];
    const Variant& variant = first_.layers[layer].by_degree.at(1)[v];
    for (std::size_t i = 0; i < inputs.size(); ++i) whole.bytes += outside(inputs[i]) ? 2 * variant.in[i] : 0;
    for (std::size_t i = 0; i < users.size(); ++i) whole.bytes += outside(users[i]) ? 2 * variant.out[i] : 0;
    whole.parameters += variant.parameters;
    whole.units += variant.memory;
    for (std::size_t t = 0; t < inputs_.size(); ++t)
      whole.seconds[t] += inputs_[t].layers[layer].by_degree.at(1)[v].seconds;
  }

  const std::vector<PiperInput>& inputs_;
  const PiperInput& first_;
  const Cuts& cuts_;
  std::pair<int, int> known_{-1, -1};
  std::vector<Whole> wholes_;  ///< [variant] of the stage between the cuts known_.
};

}  // namespace

std::optional<PiperPlan> search_piper(const std::vector<PiperInput>& inputs, const std::vector<int>& counts,
                                      const Cuts& cuts) {
  const PiperInput& first = inputs.front();
  STAGECRAFT_CHECK(first.whole_stages);
  Stages stages(inputs, cuts);
  const int max_replicas = std::min(first.most_replicas, first.micro_batches);
  const auto pipeline =
      search_mixed(cuts, counts, max_replicas, false, [&](int from, int to, const DeviceMix& mix, int devices_after) {
        return stages.seconds(from, to, mix, devices_after);
      });
  if (!pipeline) return std::nullopt;
  PiperPlan plan{pipeline->seconds, {}, pipeline->states, pipeline->exhaustive};
  int devices_after = 0;
  for (const MixedStage& stage : pipeline->stages) devices_after += stage.mix.devices;
  for (const MixedStage& stage : pipeline->stages) {
    devices_after -= stage.mix.devices;
    plan.stages.push_back(stages.stage_of(stage, devices_after));
  }
  return plan;
}

}  // namespace stagecraft::msr
