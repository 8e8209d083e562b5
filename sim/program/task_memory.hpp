#pragma once

#include <functional>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Which tensors wait on a device for tasks of layers (StageTask): what comes out of a forward, what a forward keeps
/// for the gradients of its own layer, and the gradient for each layer in front. Other devices get them as messages.
/// Each is there once, from its maker to the last task on the device that needs it. Plans of whole stages have none.
class TaskMemory {
 public:
  explicit TaskMemory(const Plan&);

  /// A tensor, or the part of it that only some need, from one op to another.
  struct ReleasedBytes {
    InstructionId from, to;
    Bytes size;
  };
  /// The tensors that no op after this one of `stage` needs. `ran`: the op of a stage on the same micro-batch, if it
  /// has run.
  std::vector<ReleasedBytes> done_with(StageId stage, const std::function<InstructionId(StageId)>& ran) const;
  bool any(StageId stage) const { return !uses_[stage].empty(); }

 private:
  struct User {
    StageId stage;
    Bytes size;  ///< Size of the part that this stage needs, for one micro-batch.
  };
  struct Tensor {
    StageId maker;
    std::vector<User> users;
  };

  std::vector<Tensor> tensors_;
  IdVector<StageId, std::vector<std::size_t>> uses_;  ///< Indices of tensors.
};

}  // namespace stagecraft
