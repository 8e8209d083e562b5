#include "sim/weights/policy.hpp"

namespace stagecraft::weights {
namespace {

constexpr WeightsRule kPaper{.forward = ForwardWeights::Predict,
                             .backward = BackwardWeights::Current,
                             .direction = Direction::Optimizer,
                             .horizon = Horizon::StageDepth};
// guanleics/PipeOptim predicts one update more, over the momentum of the next step.
constexpr WeightsRule kReleased{.forward = ForwardWeights::Predict,
                                .backward = BackwardWeights::Current,
                                .direction = Direction::NextMomentum,
                                .horizon = Horizon::StageDepthPlusOne};

}  // namespace

extern const WeightsDef pipeoptim{
    .name = "pipeoptim",
    .summary = "The forward predicts the version of its backward by the step of the optimizer; the backward is real",
    .source =
        "Guan et al., PipeOptim: Ensuring Effective 1F1B Schedule with Optimizer-Dependent Weight Prediction, 2023",
    .paper = kPaper,
    .as_released = kReleased,
};

}  // namespace stagecraft::weights
