#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

extern const WeightsDef xpipe{
    .name = "xpipe",
    .summary = "The first micro-batch of an update predicts, forward and backward, for all of them",
    .source = "Guan et al., XPipe: Efficient Pipeline Model Parallelism for Multi-GPU DNN Training, 2019",
    .paper = {.forward = ForwardWeights::Predict,
              .backward = BackwardWeights::Predict,
              .direction = Direction::Optimizer,
              .horizon = Horizon::PerMiniBatch},
};

}  // namespace stagecraft::weights
