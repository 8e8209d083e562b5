#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

extern const WeightsDef geometric{
    .name = "geometric",
    .summary = "The forward predicts the steps until its backward as if every gradient in between were zero",
    .source = "Eliad et al., Fine-tuning giant neural networks on commodity hardware (FTPipe), ATC 2021, msnag",
    .paper = {.forward = ForwardWeights::Predict,
              .backward = BackwardWeights::Current,
              .direction = Direction::Geometric,
              .horizon = Horizon::Exact},
};

}  // namespace stagecraft::weights
