#pragma once

#include <optional>

#include "sim/core/id_vector.hpp"
#include "sim/schedule/v_rows.hpp"

namespace stagecraft {

/// The step, modulo six, of each kind of pass on a rank.
using VPattern = EnumArray<VPass, int, kVPasses>;

/// Rows of one-step passes, or the peak of activations on a rank that would be too high.
struct VAttempt {
  std::optional<VRows> rows;
  int peak = 0;
};

/// How many micro-batches a pattern is repeated for before it is cut: two for each rank, so that its warm-up and its
/// end do not meet, as far as 64 beyond those that there are.
int repetitions(int ranks, int micro_batches);

/// The most activations on a rank when the patterns are repeated without more. O(ranks).
int peak_of(const std::vector<VPattern>&, int micro_batches);

/// A schedule there and back from a pattern for each rank: repeated for all micro-batches, squeezed, its warm-up and
/// its end laid anew as tight as the messages allow, and bubbles filled with later passes, all without a higher peak
/// than `most` (Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024, section 3.3 and appendix A;
/// sail-sg, v_auto_schedule.py). No rows where the steps cannot be done. O(ops of all repetitions).
VAttempt rows_from(const std::vector<VPattern>&, int micro_batches, int most);

}  // namespace stagecraft
