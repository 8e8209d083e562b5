#pragma once

#include "sim/training/optimizer.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft {

/// Which tensors of the size of the weights an optimizer keeps between updates, for itself and for the predictions of a
/// weights rule.
struct OptimizerStateTensors {
  bool first = false;   ///< Momentum, or Adam's average of gradients.
  bool second = false;  ///< Average of squares.
  bool last = false;    ///< Last gradient.
  bool bare = false;    ///< Momentum of bare gradients, where the optimizer has none.

  int count() const { return first + second + last + bare; }
};
OptimizerStateTensors state_tensors(OptimizerKind, const WeightsRule&);

}  // namespace stagecraft
