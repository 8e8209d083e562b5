// Chooses the operations of a layer that its backward computes again, by modules: norms, activations, up-projections of
// latent attention with rotations of their outputs, dense layers and experts.

#include "sim/cost/recomputed_operations.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

using enum OperationKind;

bool is_norm(const Operation& op) { return op.kind == LayerNorm || op.kind == RmsNorm || op.kind == HeadNorm; }

bool is_activation(const Operation& op) {
  return op.kind == Relu || op.kind == Tanh || op.kind == Gelu || op.kind == Silu || op.kind == GatedSilu;
}

/// The operation whose output this one reads alone, through views of it; -1 where there is none.
int source_of(int at, const std::vector<Operation>& operations) {
  do {
    const std::vector<int>& inputs = operations[at].inputs;
    if (inputs.size() != 1 || inputs.front() < 0) return -1;
    at = inputs.front();
  } while (operations[at].kind == Slice);
  return at;
}

class OperationChoice {
 public:
  OperationChoice(const std::vector<Operation>& operations, Recomputation modules)
      : operations_(operations), modules_(modules), again_(operations.size(), false) {}

  std::vector<bool> run() {
    const bool has_experts =
        std::any_of(operations_.begin(), operations_.end(), [](const Operation& op) { return op.kind == Dispatch; });
    for (int i = 0; i < std::ssize(operations_); ++i) {
      const Operation& op = operations_[i];
      const bool is_of_experts = op.division == Division::Experts || op.kind == Router;
      if (is_norm(op)) again_[i] = has(Recomputation::Outputs) || (has(Recomputation::Norms) && reads_sums(i));
      if (is_activation(op))
        again_[i] = has(Recomputation::Outputs) || (has(Recomputation::ExpertActivations) && is_of_experts);
      if (is_activation(op) && !is_of_experts && is_dense_repeated(has_experts)) repeat_dense_layer(i);
      if (is_up_projection(i)) repeat_up_projection(i);
      if (op.kind == Rotary && op.inputs.front() >= 0 && again_[op.inputs.front()]) again_[i] = true;
      if (is_of_experts && has(Recomputation::Experts)) again_[i] = true;
    }
    return std::move(again_);
  }

 private:
  bool has(Recomputation part) const { return recomputes(modules_, part); }

  /// A norm of a layer, and not of heads or of what a product makes.
  bool reads_sums(int norm) const {
    if (operations_[norm].kind == HeadNorm) return false;
    const int source = source_of(norm, operations_);
    return source < 0 || operations_[source].kind != Linear;
  }

  /// Shared experts are a part of the layer of experts.
  bool is_dense_repeated(bool has_experts) const {
    return has_experts ? has(Recomputation::Experts | Recomputation::SharedExperts) : has(Recomputation::DenseLayers);
  }

  /// The activation with the products before and after it.
  void repeat_dense_layer(int activation) {
    again_[activation] = true;
    const int up = source_of(activation, operations_);
    if (up >= 0 && operations_[up].kind == Linear) again_[up] = true;
    for (int i = activation + 1; i < std::ssize(operations_); ++i)
      if (operations_[i].kind == Linear && source_of(i, operations_) == activation) again_[i] = true;
  }

  /// A product from the norm of a short vector, which is a product itself.
  bool is_up_projection(int at) const {
    const Operation& op = operations_[at];
    if (op.kind != Linear || op.columns <= op.inner) return false;
    const int norm = source_of(at, operations_);
    if (norm < 0 || !is_norm(operations_[norm])) return false;
    const int down = source_of(norm, operations_);
    return down >= 0 && operations_[down].kind == Linear;
  }
  void repeat_up_projection(int at) {
    if (has(Recomputation::Outputs | Recomputation::UpProjections)) again_[at] = true;
    if (has(Recomputation::UpProjections)) again_[source_of(at, operations_)] = true;
  }

  const std::vector<Operation>& operations_;
  Recomputation modules_;
  std::vector<bool> again_;
};

}  // namespace

std::vector<bool> recomputed_operations(const std::vector<Operation>& operations, Recomputation modules) {
  return OperationChoice(operations, modules).run();
}

}  // namespace stagecraft
