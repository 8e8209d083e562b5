// The time that predictions and averages of weights add to ops and updates.

#include "sim/program/weights_cost.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

/// Number of tensors that the direction of a prediction is computed from. Without any state it is the last gradient.
int read_for(Direction direction, int states) {
  switch (direction) {
    case Direction::Optimizer:
    case Direction::Geometric:
      return std::max(1, states);
    case Direction::NextMomentum:
      return states == 0 ? 1 : 2;  // momentum and the last gradient, or Adam's two
    case Direction::Momentum:
      return 1;
  }
  return 1;
}

}  // namespace

Seconds predict_time(const WeightsRule& rule, bool for_backward, Seconds touch, const LoweringOptions& options) {
  const bool back = for_backward && rule.reconstructs();
  return touch * (2 + (back ? 1 : read_for(rule.direction, options.optimizer_states)));
}

Seconds update_extra(const WeightsRule& rule, Seconds touch, int delay, const LoweringOptions& options) {
  int touches = 0;
  if (rule.needs_momentum() && !options.keeps_momentum) touches += 2;
  if (delay == 0) return touch * touches;
  // delta <- gamma delta + (1 - gamma) (W(t+1) - W(t)) touches four tensors; an average of gradients three.
  if (rule.reconstructs()) touches += rule.reconstruction == Reconstruction::UpdateAverage ? 4 : 3;
  if (rule.spike_compensation) touches += 1;
  return touch * touches;
}

}  // namespace stagecraft
