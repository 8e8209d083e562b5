#pragma once

#include <functional>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

/// Which arrays wait on a device because an edge carries them (StageEdge::array) to a stage there; other devices get
/// them as messages. Each is there once, from its maker to the last stage on the device that needs it.
class EdgeArrays {
 public:
  explicit EdgeArrays(const Plan&);

  /// The arrays that no op after this one of `stage` needs; where some stages need only a part, the parts. `ran`: the
  /// op of a stage on the same micro-batch, if it has run.
  std::vector<Buffer> done_with(StageId stage, DeviceId, const std::function<InstructionId(StageId)>& ran) const;
  bool any(StageId stage) const { return !uses_[stage].empty(); }

 private:
  struct User {
    StageId stage;
    Bytes size;  ///< Size of the part that this stage needs, for one micro-batch.
  };
  struct Array {
    StageId maker;
    std::vector<User> users;
  };

  std::vector<Array> arrays_;
  IdVector<StageId, std::vector<std::size_t>> uses_;  ///< Indices of arrays.
};

}  // namespace stagecraft
