#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/enum_array.hpp"

namespace stagecraft {

/// What a rank with two chunks does in one step: a forward, input gradient or weight gradient of a chunk. F0 and I1
/// pass their messages down the ranks (to higher numbers), F1 and I0 up.
enum class VPass : std::int8_t { F0, F1, I1, I0, W1, W0 };
constexpr int kVPasses = 6;
constexpr std::array<VPass, kVPasses> kAllVPasses{VPass::F0, VPass::F1, VPass::I1, VPass::I0, VPass::W1, VPass::W0};

constexpr bool is_forward(VPass pass) { return pass == VPass::F0 || pass == VPass::F1; }
constexpr bool is_weight(VPass pass) { return pass == VPass::W0 || pass == VPass::W1; }
constexpr bool is_input_gradient(VPass pass) { return pass == VPass::I0 || pass == VPass::I1; }
constexpr int chunk_of(VPass pass) { return pass == VPass::F1 || pass == VPass::I1 || pass == VPass::W1 ? 1 : 0; }

/// How many activations the pass adds on its rank.
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

/// The passes of a rank by their steps, at most one in a step. The n-th pass of a kind is that of micro-batch n. Idle
/// steps are not stored, so a row is as long as its passes, not as the pipeline.
using VRow = std::vector<VStep>;
using VRows = std::vector<VRow>;

/// The ranks of all passes step by step; within a step first ranks with F0, I1 or W1 down the ranks, then the others
/// up. O(passes + last step).
std::vector<int> ranks_by_step(const VRows&);

/// Calls visit(rank, step) in that order until a call returns false; returns whether none did.
template <class Rows, class Visit>
bool each_by_step(Rows& rows, const Visit& visit) {
  std::vector<std::size_t> next(rows.size(), 0);
  for (const int rank : ranks_by_step(rows)) {
    if (!visit(rank, rows[rank][next[rank]++])) return false;
  }
  return true;
}

/// When each pass runs, while rows are read step by step. Time is a step or the end of a pass in seconds.
template <class Time>
class VClock {
 public:
  VClock(int ranks, int micro_batches) : micro_batches_(micro_batches), counts_(ranks), times_(ranks * micro_batches) {
    for (auto& times : times_) times.fill(kNever);
  }

  /// The time of the pass that the rank's next pass of a kind needs: -1 when it needs none, nothing when it has not
  /// run.
  std::optional<Time> input(int rank, VPass pass) const {
    const int micro = counts_[rank][pass], from = comes_from(pass, rank);
    if (micro >= micro_batches_) return {};
    const bool apart = from >= 0 && from < std::ssize(counts_);
    if (!apart && pass == VPass::F0) return kNever;
    const Time time = times_[(apart ? from : rank) * micro_batches_ + micro][apart ? pass : leg_before(pass)];
    return time < 0 ? std::nullopt : std::optional(time);
  }

  void run(int rank, VPass pass, Time time) { times_[rank * micro_batches_ + counts_[rank][pass]++][pass] = time; }

 private:
  static constexpr Time kNever = -1;

  /// The pass that a pass follows on its own rank, where the V turns and for weight gradients.
  static VPass leg_before(VPass pass) {
    constexpr EnumArray<VPass, VPass, kVPasses> before{VPass::F0, VPass::F0, VPass::F1,
                                                       VPass::I1, VPass::I1, VPass::I0};
    return before[pass];
  }

  int micro_batches_;
  std::vector<EnumArray<VPass, int, kVPasses>> counts_;  ///< [rank]
  std::vector<EnumArray<VPass, Time, kVPasses>> times_;  ///< [rank and micro-batch]
};

/// The step after the last.
int end_of(const VRow&);
int end_of(const VRows&);

/// The most activations on the rank, or on any rank.
int peak_of(const VRow&);
int peak_of(const VRows&);

/// Moves every pass as early as its input and its row allow and keeps the order of each row. False when a pass comes
/// before its input.
bool squeeze(VRows&, int micro_batches);

/// Puts weight gradients in the order of their input gradients. False unless every row has all passes, none before its
/// input.
bool order_weights(VRows&, int micro_batches);

}  // namespace stagecraft
