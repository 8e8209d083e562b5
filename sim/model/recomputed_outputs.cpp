// Chooses the operations of a layer whose outputs `recompute: outputs` computes again: norms, activations,
// up-projections of latent attention, and rotations of such outputs.

#include "sim/model/recomputed_outputs.hpp"

namespace stagecraft {
namespace {

using enum OperationKind;

bool is_norm(const Operation& op) { return op.kind == LayerNorm || op.kind == RmsNorm || op.kind == HeadNorm; }

bool is_activation(const Operation& op) {
  return op.kind == Relu || op.kind == Tanh || op.kind == Gelu || op.kind == Silu || op.kind == GatedSilu;
}

/// The operation whose output this one reads alone, behind views of it; null where there is none.
const Operation* source_of(const Operation& op, const std::vector<Operation>& operations) {
  const Operation* at = &op;
  do {
    if (at->inputs.size() != 1 || at->inputs.front() < 0) return nullptr;
    at = &operations[at->inputs.front()];
  } while (at->kind == Slice);
  return at;
}

/// A product from the norm of a short vector, which is a product itself.
bool is_up_projection(const Operation& op, const std::vector<Operation>& operations) {
  if (op.kind != Linear || op.columns <= op.inner) return false;
  const Operation* norm = source_of(op, operations);
  if (norm == nullptr || !is_norm(*norm)) return false;
  const Operation* down = source_of(*norm, operations);
  return down != nullptr && down->kind == Linear;
}

}  // namespace

std::vector<bool> recomputed_outputs(const std::vector<Operation>& operations) {
  std::vector<bool> again;
  for (const Operation& op : operations) {
    const bool turns = op.kind == Rotary && op.inputs.front() >= 0 && again[op.inputs.front()];
    again.push_back(turns || is_norm(op) || is_activation(op) || is_up_projection(op, operations));
  }
  return again;
}

}  // namespace stagecraft
