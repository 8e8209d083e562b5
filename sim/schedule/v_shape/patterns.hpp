#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/v_shape/rows.hpp"

namespace stagecraft {

/// The step, modulo six, of each kind of pass on a rank.
using VPattern = EnumArray<VPass, int, kVPasses>;

/// The patterns of all ranks from that of the first: F0 and I1 come `first` steps later on each of the next `turn`
/// ranks and `second` steps later on each rank after them; F1 and I0 come one step earlier on each. All modulo six.
struct VSlope {
  VPattern top;
  int first = 1, second = 1, turn = 1;
};

/// The most steps that a slope takes for a rank.
constexpr int kSteepest = 5;

/// Every pattern of the first rank, ordered by the step of F1.
std::vector<VPattern> v_tops();

/// The patterns of all ranks for a slope; nothing when two passes share a step.
std::optional<std::vector<VPattern>> patterns_of(const VSlope&, int ranks);

/// Whether there are patterns. O(1).
bool has_patterns(const VSlope&, int ranks);

/// How many micro-batches a pattern is repeated for before it is cut: two for each rank, so that its warm-up and its
/// end do not meet, but at most 64 more than there are.
int repetitions(int ranks, int micro_batches);

/// The most activations on a rank when the patterns are only repeated. O(ranks).
int peak_of(const std::vector<VPattern>&, int micro_batches);

/// Rows of one-step passes, or the peak of activations on a rank that is too high.
struct VAttempt {
  std::optional<VRows> rows;
  int peak = 0;
};

/// A V-shaped schedule from a pattern for each rank: repeated for all micro-batches, squeezed, its warm-up and its end
/// rebuilt as tight as the messages allow, and bubbles filled with later passes, all without a higher peak than
/// `max_peak` (Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024, section 3.3 and appendix A;
/// sail-sg, v_auto_schedule.py). No rows when a step fails. O(ops of all repetitions).
VAttempt rows_from(const std::vector<VPattern>&, int micro_batches, int max_peak);

}  // namespace stagecraft
