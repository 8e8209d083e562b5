#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace stagecraft {

/// What a rank with two chunks does in one step: a forward, input gradient or weight gradient of a chunk, or nothing.
/// Those of the forward of chunk 0 and the gradients of chunk 1 go down the ranks, the others up.
enum class VPass : std::int8_t { F0, F1, I1, I0, W1, W0, Free };
constexpr int kVPasses = 6;

/// [rank][step]. The n-th pass of a kind in a row is that of micro-batch n.
using VRows = std::vector<std::vector<VPass>>;

/// The step, modulo six, of each kind of pass on a rank.
using VPattern = std::array<int, kVPasses>;

/// Rows of one-step passes, or the peak of activations on a rank that would be too high.
struct VAttempt {
  std::optional<VRows> rows;
  int peak = 0;
};

/// The most activations on a rank when the patterns are repeated without more. O(ranks).
int peak_of(const std::vector<VPattern>&, int micro_batches);

/// A schedule there and back from a pattern for each rank: repeated for all micro-batches, squeezed, its warm-up and
/// its end laid anew as tight as the messages allow, and bubbles filled with later passes, all without a higher peak
/// than `most` (Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024, section 3.3 and appendix A;
/// sail-sg, v_auto_schedule.py). No rows where the steps cannot be done. O(ops), or where there are fewer micro-batches
/// than two for each rank, of those for so many.
VAttempt rows_from(const std::vector<VPattern>&, int micro_batches, int most);

bool is_forward(VPass);
int chunk_of(VPass);

/// The rank that the pass takes its message from: `ranks` or -1 where it needs none from another rank.
int comes_from(VPass, int rank);

}  // namespace stagecraft
