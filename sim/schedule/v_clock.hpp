#pragma once

#include <optional>

#include "sim/core/id_vector.hpp"
#include "sim/schedule/v_rows.hpp"

namespace stagecraft {

/// When each pass runs, while rows are gone through step by step. A pass before its input is not there.
class VClock {
 public:
  VClock(int ranks, int micro_batches) : micro_batches_(micro_batches), counts_(ranks), times_(ranks * micro_batches) {
    for (auto& times : times_) times.fill(-1);
  }

  /// The step of what the rank's next pass of a kind needs, -1 for nothing; nothing when it has not run.
  std::optional<int> input(int rank, VPass pass) const {
    const int micro = counts_[rank][pass], from = comes_from(pass, rank);
    if (micro >= micro_batches_) return {};
    const bool apart = from >= 0 && from < std::ssize(counts_);
    if (!apart && pass == VPass::F0) return -1;
    const int time = times_[(apart ? from : rank) * micro_batches_ + micro][apart ? pass : leg_before(pass)];
    return time < 0 ? std::nullopt : std::optional(time);
  }

  void run(int rank, VPass pass, int time) { times_[rank * micro_batches_ + counts_[rank][pass]++][pass] = time; }

 private:
  using Counts = EnumArray<VPass, int, kVPasses>;

  /// What a pass follows on its own rank, where the V turns and for weight gradients.
  static VPass leg_before(VPass pass) {
    constexpr EnumArray<VPass, VPass, kVPasses> before{VPass::F0, VPass::F0, VPass::F1,
                                                       VPass::I1, VPass::I1, VPass::I0};
    return before[pass];
  }

  int micro_batches_;
  std::vector<Counts> counts_;
  std::vector<Counts> times_;
};

}  // namespace stagecraft
