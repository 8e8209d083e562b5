// The table of optimizers with their fields and sources; backends/real/formulas has the arithmetic.

#include "sim/training/optimizer.hpp"

namespace stagecraft {
namespace {

using namespace config;

/// Means that never forget would divide by zero where Adam corrects them.
constexpr double kBelowOne = 0.999999999;

Field decay(const char* fallback, const char* where) {
  return real("weight_decay", 0, 1e6).fallback(fallback).doc(where);
}
Field coupled_decay() { return decay("0", "Weight decay: this factor times the weights is added to the gradient."); }
Field epsilon() { return real("epsilon", 1e-30, 1).fallback("1e-8").doc("Added to the root of the mean square."); }
Field beta(const char* name, const char* fallback, const char* doc) {
  return real(name, 0, kBelowOne).fallback(fallback).doc(doc);
}

std::vector<Field> adam_like(Field weight_decay) {
  return {beta("beta1", "0.9", "Share of the mean gradient that each step keeps."),
          beta("beta2", "0.999", "Share of the mean square that each step keeps."), epsilon(), std::move(weight_decay)};
}

const MapSpec sgd_fields{"Plain gradient descent.", {coupled_decay()}};
const MapSpec momentum_fields{
    "Gradient descent with momentum.",
    {real("momentum", 0, 1).fallback("0.9").doc("Share of the momentum that each step keeps."),
     real("dampening", 0, 1)
         .fallback("0")
         .doc("Share of each gradient, except the first, that does not enter the momentum."),
     coupled_decay()}};
const MapSpec adam_fields{"Adam.", adam_like(coupled_decay())};
const MapSpec adamw_fields{
    "Adam with the weight decay apart.",
    adam_like(decay("0.01", "Weight decay: each step multiplies the weights by 1 - lr times this factor."))};
const MapSpec rmsprop_fields{
    "RMSprop, neither centered nor with momentum.",
    {beta("alpha", "0.99", "Share of the mean square that each step keeps."), epsilon(), coupled_decay()}};

const OptimizerDef kOptimizers[] = {
    {"sgd", "Plain gradient descent", "Robbins and Monro, Ann. Math. Statist. 22 (1951)", OptimizerKind::Sgd,
     &sgd_fields},
    {"momentum", "Gradient descent with momentum, dampened as in PyTorch",
     "Polyak, USSR Comput. Math. Math. Phys. 4 (1964)", OptimizerKind::Momentum, &momentum_fields},
    {"adam", "Mean gradient divided by the root of the mean square", "Kingma and Ba, ICLR 2015", OptimizerKind::Adam,
     &adam_fields},
    {"adamw", "Adam with decoupled weight decay", "Loshchilov and Hutter, ICLR 2019", OptimizerKind::AdamW,
     &adamw_fields},
    {"rmsprop", "Gradient divided by the root of the mean square", "Tieleman and Hinton, Neural Networks for ML, 2012",
     OptimizerKind::RmsProp, &rmsprop_fields},
    {"integer", "Momentum in whole numbers, exact in any order of summation; has no learning rate", "this project",
     OptimizerKind::Integer, nullptr},
};

}  // namespace

Catalog<OptimizerDef> optimizers() {
  static const OptimizerDef* const entries[] = {&kOptimizers[0], &kOptimizers[1], &kOptimizers[2],
                                                &kOptimizers[3], &kOptimizers[4], &kOptimizers[5]};
  return entries;
}

std::string_view to_text(OptimizerKind kind) { return kOptimizers[static_cast<int>(kind)].name; }

int OptimizerRule::state_tensors() const {
  switch (kind) {
    case OptimizerKind::Sgd:
      return 0;
    case OptimizerKind::Momentum:
    case OptimizerKind::RmsProp:
    case OptimizerKind::Integer:
      return 1;
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW:
      return 2;
  }
  return 0;
}

}  // namespace stagecraft
