// Which tensors an optimizer keeps between updates, for itself and for predictions of weights.

#include "sim/weights/optimizer_state.hpp"

namespace stagecraft {

OptimizerStateTensors state_tensors(OptimizerKind kind, const WeightsRule& rule) {
  const bool adam = kind == OptimizerKind::Adam || kind == OptimizerKind::AdamW;
  OptimizerStateTensors t;
  t.first = adam || kind == OptimizerKind::Momentum || kind == OptimizerKind::Integer;
  t.second = adam || kind == OptimizerKind::RmsProp;
  if (!rule.predicts()) return t;
  // What the next step would look like takes the last gradient, unless Adam's averages know.
  const bool looks_at_gradient = rule.direction == Direction::NextMomentum || !t.first;
  t.last = looks_at_gradient && !adam;
  t.bare = rule.direction == Direction::Momentum && !t.first;
  return t;
}

}  // namespace stagecraft
