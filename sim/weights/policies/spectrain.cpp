#include "sim/weights/policy.hpp"

namespace stagecraft::weights {
namespace {

constexpr WeightsRule kPaper{.forward = ForwardWeights::Predict,
                             .backward = BackwardWeights::Predict,
                             .direction = Direction::Momentum,
                             .horizon = Horizon::ToCompletion};
// ntueclab/SpecTrain-PyTorch adds the last gradient to the momentum before a forward. Before a backward it has set the
// gradient to zero, which leaves mu m; a rule has one direction, so here both look ahead in the same way.
constexpr WeightsRule kReleased{.forward = ForwardWeights::Predict,
                                .backward = BackwardWeights::Predict,
                                .direction = Direction::NextMomentum,
                                .horizon = Horizon::ToCompletion};

}  // namespace

extern const WeightsDef spectrain{
    .name = "spectrain",
    .summary = "Forward and backward both predict the version at which the micro-batch is through",
    .source = "Chen et al., Efficient and Robust Parallel DNN Training through Model Parallelism (SpecTrain), 2018",
    .paper = kPaper,
    .as_released = kReleased,
};

}  // namespace stagecraft::weights
