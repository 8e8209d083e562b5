// Piper's search on devices of several types, for the planner `piper`: without tensor parallelism, so the devices from
// a stage on are the sum of their data degrees, and with one variant for a whole stage, which has to fit on every type
// that its replicas are of.

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/planners/chain_partition/mixed.hpp"
#include "sim/planners/chain_partition/piper.hpp"
#include "sim/planners/chain_partition/whole_stage.hpp"

namespace stagecraft::chain_partition {
namespace {

std::vector<const PiperInput*> pointers_to(const std::vector<PiperInput>& inputs) {
  std::vector<const PiperInput*> pointers;
  for (const PiperInput& input : inputs) pointers.push_back(&input);
  return pointers;
}

class Stages {
 public:
  Stages(const std::vector<PiperInput>& inputs, const Cuts& cuts)
      : inputs_(inputs), first_(inputs.front()), cuts_(cuts), wholes_(pointers_to(inputs), cuts, 1) {}

  double seconds(int from, int to, const DeviceMix& mix, int devices_after) {
    const int variant = best_variant(from, to, mix, devices_after);
    return variant < 0 ? kInfinity : seconds_of((*stage_)[variant], mix);
  }

  PiperStage stage_of(const MixedStage& mixed_stage, int devices_after) {
    const int variant = best_variant(mixed_stage.from, mixed_stage.to, mixed_stage.mix, devices_after);
    STAGECRAFT_CHECK(variant >= 0);
    PiperStage stage{mixed_stage.from, mixed_stage.to, 1, mixed_stage.mix.devices, {}, 0, mixed_stage.mix.of_type};
    stage.variants.assign(cuts_.layers_between(mixed_stage.from, mixed_stage.to).size(), variant);
    stage.memory = (*stage_)[variant].memory(in_flight(mixed_stage.mix, devices_after));
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
    if (std::pair{from, to} != between_) stage_ = &wholes_.between(from, to), between_ = {from, to};
    int best = -1;
    for (std::size_t v = 0; v < stage_->size(); ++v) {
      if ((*stage_)[v].memory(in_flight(mix, devices_after)) > least_memory(mix)) continue;
      if (best < 0 || seconds_of((*stage_)[v], mix) < seconds_of((*stage_)[best], mix)) best = static_cast<int>(v);
    }
    return best;
  }

  double least_memory(const DeviceMix& mix) const {
    double smallest = kInfinity;
    for (std::size_t t = 0; t < inputs_.size(); ++t)
      if (mix.types >> t & 1) smallest = std::min(smallest, inputs_[t].memory);
    return smallest;
  }

  double seconds_of(const WholeStage& whole, const DeviceMix& mix) const {
    double slowest = 0;
    for (std::size_t t = 0; t < inputs_.size(); ++t)
      if (mix.types >> t & 1) slowest = std::max(slowest, whole.seconds[t]);
    return whole.seconds_with(slowest, mix.devices, first_);
  }

  const std::vector<PiperInput>& inputs_;
  const PiperInput& first_;
  const Cuts& cuts_;
  WholeStages wholes_;
  std::pair<int, int> between_{-1, -1};
  const std::vector<WholeStage>* stage_ = nullptr;  ///< The variants of the stage between the cuts `between_`.
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

}  // namespace stagecraft::chain_partition
