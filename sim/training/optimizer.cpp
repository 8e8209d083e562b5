#include "sim/training/optimizer.hpp"

namespace stagecraft {

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

std::string_view to_text(OptimizerKind kind) {
  constexpr std::string_view names[] = {"sgd", "momentum", "adam", "adamw", "rmsprop", "integer"};
  return names[static_cast<int>(kind)];
}

}  // namespace stagecraft
