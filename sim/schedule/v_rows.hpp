#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace stagecraft {

/// What a rank with two chunks does in one step: a forward, input gradient or weight gradient of a chunk. Those of the
/// forward of chunk 0 and the gradients of chunk 1 go down the ranks, the others up.
enum class VPass : std::int8_t { F0, F1, I1, I0, W1, W0 };
constexpr int kVPasses = 6;
constexpr std::array<VPass, kVPasses> kAllVPasses{VPass::F0, VPass::F1, VPass::I1, VPass::I0, VPass::W1, VPass::W0};

constexpr bool is_forward(VPass pass) { return pass == VPass::F0 || pass == VPass::F1; }
constexpr bool is_weight(VPass pass) { return pass == VPass::W0 || pass == VPass::W1; }
constexpr int chunk_of(VPass pass) { return pass == VPass::F1 || pass == VPass::I1 || pass == VPass::W1 ? 1 : 0; }

/// What the pass adds to the activations of its rank.
constexpr int activations(VPass pass) { return is_forward(pass) ? 1 : is_weight(pass) ? -1 : 0; }

/// The rank that the pass takes its message from: `ranks` or -1 where it needs none from another rank.
constexpr int comes_from(VPass pass, int rank) {
  return is_weight(pass) ? -1 : pass == VPass::F0 || pass == VPass::I1 ? rank - 1 : rank + 1;
}

struct VStep {
  int time;
  VPass pass;
};
bool operator==(const VStep&, const VStep&);

/// The passes of a rank by their steps, none in one step twice. The n-th of a kind is that of micro-batch n. Steps in
/// which the rank does nothing are not there, so rows are as long as their passes, not as the pipeline.
using VRow = std::vector<VStep>;
using VRows = std::vector<VRow>;

/// The ranks of all passes step by step; in a step first those with F0, I1 or W1 down the ranks, then the others up.
/// O(passes + last step).
std::vector<int> ranks_by_step(const VRows&);

/// Calls visit(rank, step) in that order until one is false; whether none was.
template <class Rows, class Visit>
bool each_by_step(Rows& rows, const Visit& visit) {
  std::vector<std::size_t> next(rows.size(), 0);
  for (const int rank : ranks_by_step(rows)) {
    const auto r = static_cast<std::size_t>(rank);
    if (!visit(rank, rows[r][next[r]++])) return false;
  }
  return true;
}

/// The step behind the last.
int end_of(const VRow&);
int end_of(const VRows&);

/// The most activations on the rank, or on any.
int peak_of(const VRow&);
int peak_of(const VRows&);

/// Every pass as early as its input and its row allow, no row in another order. False when one stands before its input.
bool squeeze(VRows&, int micro_batches);

/// Weight gradients in the order of their gradients. False unless every row has all passes, none before its input.
bool settle(VRows&, int micro_batches);

}  // namespace stagecraft
