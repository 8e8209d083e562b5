#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "backends/real/group_communicator.hpp"
#include "backends/real/stage_net.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::real {

/// A bucket that waits for a backward.
struct WaitingSum {
  InstructionId member;  ///< Its instruction on the device of the computation.
  int collective = 0;
  double after = 1;  ///< See CollectiveCall::after; below 1, the sum starts when its layers are done.
};

/// The buckets in which a Program sums the gradients of its stages, from the last layers to the first. Buckets of one
/// update divide the numbers of a gradient in proportion to their bytes, or equally if these are unknown.
class GradientBuckets {
 public:
  explicit GradientBuckets(const Program&);

  bool empty() const { return shares_.empty(); }
  bool is_bucket(int collective) const { return shares_.contains(collective); }
  /// What a bucket sums of a gradient of this many numbers.
  ShardRange range(int collective, std::int64_t numbers) const;
  /// The sums that wait for this backward of their stage, in the order of their buckets.
  std::span<const WaitingSum> waiting_for(InstructionId backward) const;

 private:
  struct Share {
    double before = 0, through = 1;  ///< Parts of the gradient in earlier buckets, and in these and this one.
  };
  std::map<int, Share> shares_;                               ///< By collective.
  std::map<InstructionId, std::vector<WaitingSum>> waiting_;  ///< By backward.
};

/// After node `n` of a backward, the gradients of dense weights from this number on get nothing more: tied
/// weights are complete after the earliest of their nodes.
std::int64_t summed_from(const StageNet&, std::size_t n);

}  // namespace stagecraft::real
