// The policy `custom`: each choice of the weights rule is an option.
#include <array>

#include <fmt/core.h>

#include "sim/core/enum_array.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft::weights {
namespace {

using config::choice;
using config::Value;

// In the order of the enumerations.
constexpr std::array<std::string_view, 4> kForward = {"current", "double_buffer", "vertical", "predict"};
constexpr std::array<std::string_view, 4> kBackward = {"current", "same_as_forward", "predict", "reconstruct"};
constexpr std::array<std::string_view, 4> kDirection = {"optimizer", "next_momentum", "momentum", "geometric"};
constexpr EnumArray<Horizon, std::string_view, 5> kHorizon = {"exact", "stage_depth", "stage_depth_plus_one",
                                                              "to_completion", "per_mini_batch"};
constexpr std::array<std::string_view, 2> kReconstruction = {"update_average", "gradient_average"};

template <std::size_t N>
std::vector<std::string> words(const std::array<std::string_view, N>& list) {
  return {list.begin(), list.end()};
}

template <class Enum, std::size_t N>
Enum meaning(const Value& word, const std::array<std::string_view, N>& list) {
  for (std::size_t i = 0; i < N; ++i)
    if (list[i] == word.text) return static_cast<Enum>(i);
  throw InternalError("an unchecked word: " + word.text);
}

const config::MapSpec predictor_fields{
    .title = "How weights are predicted: W - learning rate * horizon * direction.",
    .fields = {choice("direction", words(kDirection))
                   .fallback("optimizer")
                   .doc("Direction of the prediction: the optimizer's step, the momentum after one more equal "
                        "gradient, the momentum of the plain gradients, or the coming steps with zero gradients."),
               choice("horizon", words(kHorizon))
                   .fallback("exact")
                   .doc("Number of updates to predict: until the backward in this schedule, until the backward in the "
                        "steady state, one more than that, until the micro-batch has left the pipeline, or XPipe's "
                        "rule for a whole update.")},
};

const config::MapSpec update_fields{
    .title = "Changes of the update rule.",
    .fields =
        {config::integer("shrink_updates", 0, 1e9)
             .fallback("0")
             .doc("Updates in which the learning rate grows from lr / delay to lr (PipeMare); 0: lr from the start."),
         config::boolean("spike_compensation")
             .fallback("false")
             .doc("Whether each update adds the momentum that the delay withheld.")},
};

const config::MapSpec fields{
    .title = "Any point in the space of policies.",
    .fields = {choice("forward_weights", words(kForward))
                   .fallback("current")
                   .doc("Weights of the forward: the newest version, the version one update older, the same version on "
                        "every stage, or a prediction."),
               choice("backward_weights", words(kBackward))
                   .fallback("current")
                   .doc("Weights of the backward: the newest version, the version of the forward, a prediction, or a "
                        "reconstruction of the forward's version."),
               config::map("predictor", predictor_fields).optional().doc("How predicted weights are computed."),
               choice("reconstruction", words(kReconstruction))
                   .optional()
                   .doc("The average used for backward_weights: reconstruct."),
               config::map("update", update_fields).optional().doc("Changes of the update rule.")},
};

void refuse(const Value& at, std::string_view field, std::string message, std::string help) {
  throw InputError({{at.where, fmt::format("weights.{}", field), std::move(message), std::move(help), "weights"}});
}

void check_together(const Value& map, const WeightsRule& rule) {
  const Value &forward = map.at("forward_weights"), &backward = map.at("backward_weights");
  const bool old = rule.forward == ForwardWeights::DoubleBuffer || rule.forward == ForwardWeights::Vertical;
  if (old && rule.backward == BackwardWeights::Predict)
    refuse(backward, "backward_weights",
           fmt::format("a forward on {} weights was not predicted, so its backward cannot be either", forward.text),
           "write backward_weights: same_as_forward");
  if (rule.reconstructs() && rule.forward != ForwardWeights::Current)
    refuse(backward, "backward_weights",
           fmt::format("only the weights of a forward on the newest version can be reconstructed, not {} weights",
                       forward.text),
           "write backward_weights: same_as_forward");
  const Value* predictor = map.find("predictor");
  if (predictor && !rule.predicts())
    refuse(*predictor, "predictor", "nothing is predicted", "write forward_weights: predict, or take this out");
  const bool reaches_past_it = rule.horizon == Horizon::ToCompletion || rule.horizon == Horizon::PerMiniBatch;
  if (rule.backward == BackwardWeights::Predict && !reaches_past_it)
    refuse(predictor ? predictor->at("horizon") : backward, "predictor.horizon",
           fmt::format("the horizon {} ends at the backward, which leaves nothing for it to predict",
                       kHorizon[rule.horizon]),
           "write horizon: to_completion or per_mini_batch, or backward_weights: current");
  const Value* reconstruction = map.find("reconstruction");
  if (reconstruction && !rule.reconstructs())
    refuse(*reconstruction, "reconstruction", "nothing is reconstructed",
           "write backward_weights: reconstruct, or take this out");
}

void read(const Value& map, WeightsRule& rule) {
  rule.forward = meaning<ForwardWeights>(map.at("forward_weights"), kForward);
  rule.backward = meaning<BackwardWeights>(map.at("backward_weights"), kBackward);
  if (const Value* predictor = map.find("predictor")) {
    rule.direction = meaning<Direction>(predictor->at("direction"), kDirection);
    rule.horizon = meaning<Horizon>(predictor->at("horizon"), kHorizon);
  }
  if (const Value* word = map.find("reconstruction"))
    rule.reconstruction = meaning<Reconstruction>(*word, kReconstruction);
  if (const Value* update = map.find("update")) {
    rule.shrink_updates = config::as_int(update->at("shrink_updates"));
    rule.spike_compensation = config::as_bool(update->at("spike_compensation"));
  }
  check_together(map, rule);
}

}  // namespace

extern const WeightsDef custom{
    .name = "custom",
    .summary = "The full form: forward and backward weights, predictor, reconstruction, update",
    .source = "the space that the other policies are points of",
    .paper = {},
    .fields = &fields,
    .read = read,
};

}  // namespace stagecraft::weights
