#include "sim/weights/policy.hpp"

namespace stagecraft::weights {
namespace {

const config::MapSpec fields{
    .title = "PipeMare: the learning rate shrunk by the delay at first, and the forward's weights reconstructed.",
    .fields = {config::integer("shrink_updates", 0, 1e9)
                   .fallback("100")
                   .doc(
                       "Updates until the learning rate of a stage with delay tau has grown from lr / tau to lr; 0: lr "
                       "from the start. The paper tunes it for each task.")},
};

void read(const config::Value& map, WeightsRule& rule) {
  rule.shrink_updates = config::as_int(map.at("shrink_updates"));
}

}  // namespace

extern const WeightsDef pipemare{
    .name = "pipemare",
    .summary = "One version; the backward goes back by an average of the updates, and lr grows from lr / delay",
    .source = "Yang et al., PipeMare, MLSys 2021, techniques 1 and 2",
    .paper = {.backward = BackwardWeights::Reconstruct,
              .reconstruction = Reconstruction::UpdateAverage,
              .shrink_updates = 100},
    .fields = &fields,
    .read = read,
};

}  // namespace stagecraft::weights
