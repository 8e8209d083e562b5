#pragma once

#include <cstdint>
#include <string_view>

#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"

// Update rules of optimizers, with their constants; backends/real/formulas has the arithmetic.

namespace stagecraft {

enum class OptimizerKind : std::uint8_t {
  Sgd,       ///< W -= lr g
  Momentum,  ///< m = mu m + (1 - dampening) g, m = g at the first step as in PyTorch;  W -= lr m
  Adam,      ///< Kingma and Ba, ICLR 2015; weight decay is added to the gradient
  AdamW,     ///< Loshchilov and Hutter, ICLR 2019; weight decay apart
  RmsProp,   ///< v = alpha v + (1 - alpha) g^2;  W -= lr g / (sqrt(v) + epsilon)
  Integer,   ///< m = floor(m / 2) + g;  W = clamp(W - floor(m / 2048 + 0.5), -2, 2): exact in whole numbers
};

/// One update rule with its constants.
struct OptimizerRule {
  OptimizerKind kind = OptimizerKind::Adam;
  double learning_rate = 1e-3, weight_decay = 0;
  double momentum = 0.9, dampening = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double alpha = 0.99;  ///< RmsProp.

  int state_tensors() const;  ///< Number of weight-sized tensors in addition to the weights and their gradient.
};

std::string_view to_text(OptimizerKind);

/// An optimizer for people: `training.optimizer` picks one, `fields` are its constants.
struct OptimizerDef {
  std::string_view name, summary, source;
  OptimizerKind kind;
  const config::MapSpec* fields;  ///< Null: none.
};

/// All optimizers, in the order of OptimizerKind.
Catalog<OptimizerDef> optimizers();

}  // namespace stagecraft
