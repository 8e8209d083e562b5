// The table of weights policies: each as its paper has it and as its code has it. A new policy is one entry.

#include "sim/weights/policy.hpp"

#include <vector>

namespace stagecraft::weights {

/// The policy whose rule a scenario writes itself; custom_policy.cpp has it.
extern const WeightsDef custom;

namespace {

const config::MapSpec kPipeMareFields{
    .title = "PipeMare: the learning rate shrunk by the delay at first, and the forward's weights reconstructed.",
    .fields = {config::integer("shrink_updates", 0, 1e9)
                   .fallback("100")
                   .doc("Updates in which the learning rate of a stage with delay tau grows from lr / tau to lr; 0: lr "
                        "from the start. The paper tunes it for each task.")},
};

void read_pipemare(const config::Value& map, WeightsRule& rule) {
  rule.shrink_updates = config::as_int(map.at("shrink_updates"));
}

constexpr WeightsRule kPipeOptimPaper{.forward = ForwardWeights::Predict,
                                      .backward = BackwardWeights::Current,
                                      .direction = Direction::Optimizer,
                                      .horizon = Horizon::StageDepth};
// guanleics/PipeOptim predicts one update more, over the momentum of the next step.
constexpr WeightsRule kPipeOptimReleased{.forward = ForwardWeights::Predict,
                                         .backward = BackwardWeights::Current,
                                         .direction = Direction::NextMomentum,
                                         .horizon = Horizon::StageDepthPlusOne};

constexpr WeightsRule kSpecTrainPaper{.forward = ForwardWeights::Predict,
                                      .backward = BackwardWeights::Predict,
                                      .direction = Direction::Momentum,
                                      .horizon = Horizon::ToCompletion};
// ntueclab/SpecTrain-PyTorch adds the last gradient to the momentum before a forward. Before a backward it has set the
// gradient to zero, which leaves mu m; a rule has one direction, so here both look ahead in the same way.
constexpr WeightsRule kSpecTrainReleased{.forward = ForwardWeights::Predict,
                                         .backward = BackwardWeights::Predict,
                                         .direction = Direction::NextMomentum,
                                         .horizon = Horizon::ToCompletion};

/// Each policy is a point in the space of rules: as its paper has it, and as its published code has it where that
/// differs. A new policy is one entry here.
const WeightsDef kPolicies[] = {
    // W(u+1) = W(u) - step(mean gradient at W(u-1)) with W(-1) = W(0).
    {
        .name = "2bw",
        .summary = "Two versions in turn; every gradient is one update old",
        .source = "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021, section 3.1",
        .paper = {.forward = ForwardWeights::DoubleBuffer, .backward = BackwardWeights::SameAsForward},
    },
    // Nothing is in flight at an update, so the newest version is the only one.
    {
        .name = "flush",
        .summary = "One version: every iteration drains before its update",
        .source = "Huang et al., GPipe, NeurIPS 2019",
        .needs_flush = true,
        .paper = {},
    },
    {
        .name = "geometric",
        .summary = "The forward predicts the steps until its backward as if every gradient in between were zero",
        .source = "Eliad et al., Fine-tuning giant neural networks on commodity hardware (FTPipe), ATC 2021, msnag",
        .paper = {.forward = ForwardWeights::Predict,
                  .backward = BackwardWeights::Current,
                  .direction = Direction::Geometric,
                  .horizon = Horizon::Exact},
    },
    // The window of the average is a reading of the paper's text: it is as long as the delay.
    {
        .name = "layerpipe2",
        .summary = "One version; the backward subtracts an average of the later gradients",
        .source = "LayerPipe2: Multistage Pipelining and Weight Recompute via Improved EMA, 2025",
        .paper = {.backward = BackwardWeights::Reconstruct, .reconstruction = Reconstruction::GradientAverage},
    },
    {
        .name = "naive",
        .summary = "One version only, so a backward may use other weights than its forward",
        .source = "the baseline of Chen et al., SpecTrain, 2018, and of Kosson et al., MLSys 2021",
        .paper = {},
    },
    {
        .name = "pipemare",
        .summary = "One version; the backward subtracts an average of the updates, and the learning rate grows from lr "
                   "/ delay",
        .source = "Yang et al., PipeMare, MLSys 2021, techniques 1 and 2",
        .paper = {.backward = BackwardWeights::Reconstruct,
                  .reconstruction = Reconstruction::UpdateAverage,
                  .shrink_updates = 100},
        .fields = &kPipeMareFields,
        .read = read_pipemare,
    },
    {
        .name = "pipeoptim",
        .summary = "The forward predicts the version of its backward with the optimizer's step; the backward uses the "
                   "newest version",
        .source =
            "Guan et al., PipeOptim: Ensuring Effective 1F1B Schedule with Optimizer-Dependent Weight Prediction, 2023",
        .paper = kPipeOptimPaper,
        .as_released = kPipeOptimReleased,
    },
    {
        .name = "spectrain",
        .summary = "Forward and backward both predict the version at the end of the micro-batch",
        .source = "Chen et al., Efficient and Robust Parallel DNN Training through Model Parallelism (SpecTrain), 2018",
        .paper = kSpecTrainPaper,
        .as_released = kSpecTrainReleased,
    },
    // The released step moves the only copy of the weights by lr (D - k) v, which is a separate learning rate for
    // each stage and no choice of weights: this is what the README says.
    {
        .name = "spectrain-v2",
        .summary = "The forward predicts the version of its backward, which uses the same prediction",
        .source = "README of ntueclab/SpecTrain-PyTorch, variant 2",
        .paper = {.forward = ForwardWeights::Predict,
                  .backward = BackwardWeights::SameAsForward,
                  .direction = Direction::Momentum,
                  .horizon = Horizon::StageDepth},
    },
    {
        .name = "spike-compensation",
        .summary = "One version; each update adds the momentum that the delay withheld",
        .source = "Kosson et al., Pipelined Backpropagation at Scale, MLSys 2021",
        .paper = {.spike_compensation = true},
    },
    {
        .name = "stash",
        .summary = "The forward uses the newest version and keeps it for its backward",
        .source = "Narayanan et al., PipeDream, SOSP 2019, weight stashing",
        .paper = {.backward = BackwardWeights::SameAsForward},
    },
    {
        .name = "vertical-sync",
        .summary = "The version that the first stage used, on every stage, forward and backward",
        .source = "Narayanan et al., PipeDream, SOSP 2019, vertical sync",
        .paper = {.forward = ForwardWeights::Vertical, .backward = BackwardWeights::SameAsForward},
    },
    {
        .name = "xpipe",
        .summary =
            "The first micro-batch of an update predicts the weights for all its micro-batches, forward and backward",
        .source = "Guan et al., XPipe: Efficient Pipeline Model Parallelism for Multi-GPU DNN Training, 2019",
        .paper = {.forward = ForwardWeights::Predict,
                  .backward = BackwardWeights::Predict,
                  .direction = Direction::Optimizer,
                  .horizon = Horizon::PerMiniBatch},
    },
};

}  // namespace

Catalog<WeightsDef> catalog() {
  static const std::vector<const WeightsDef*> entries = [] {
    std::vector<const WeightsDef*> list{&custom};
    for (const WeightsDef& policy : kPolicies) list.push_back(&policy);
    return list;
  }();
  return entries;
}

}  // namespace stagecraft::weights

namespace stagecraft {

const config::MapSpec& weights_fields() {
  static const config::MapSpec spec{
      .title = "Which version of the weights each op uses.",
      .fields = {config::choice("fidelity", {"paper", "as_released"})
                     .fallback("paper")
                     .doc("Whether to follow the paper or its published code, where the two differ in their choice of "
                          "weights.")},
  };
  return spec;
}

WeightsRule rule_of(const WeightsDef& def, const config::Value& map) {
  const bool released = map.at("fidelity").text == "as_released";
  WeightsRule rule = released && def.as_released ? *def.as_released : def.paper;
  if (def.read) def.read(map, rule);
  return rule;
}

}  // namespace stagecraft
