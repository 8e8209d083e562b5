#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

// The released step moves the only copy of the weights by lr (D - k) v, which is a learning rate of its own for each
// stage and no choice of weights: this is what the README says.
extern const WeightsDef spectrain_v2{
    .name = "spectrain-v2",
    .summary = "The forward predicts the version of its backward, which uses the same prediction",
    .source = "README of ntueclab/SpecTrain-PyTorch, variant 2",
    .paper = {.forward = ForwardWeights::Predict,
              .backward = BackwardWeights::SameAsForward,
              .direction = Direction::Momentum,
              .horizon = Horizon::StageDepth},
};

}  // namespace stagecraft::weights
