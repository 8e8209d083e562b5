#pragma once

#include <optional>

#include "sim/schedule/v_rows.hpp"

namespace stagecraft {

/// When each pass runs, while rows are gone through step by step. A pass before its input is not there.
class VClock {
 public:
  VClock(int ranks, int micro_batches)
      : micro_batches_(micro_batches), counts_(at(ranks)), times_(at(ranks * micro_batches)) {
    for (auto& times : times_) times.fill(-1);
  }

  /// The step of what the rank's next pass of a kind needs, -1 for nothing; nothing when it has not run.
  std::optional<int> input(int rank, VPass pass) const {
    const int micro = counts_[at(rank)][at(pass)], from = comes_from(pass, rank);
    if (micro >= micro_batches_) return {};
    const bool apart = from >= 0 && at(from) < counts_.size();
    if (!apart && pass == VPass::F0) return -1;
    const int time = times_[at((apart ? from : rank) * micro_batches_ + micro)][at(apart ? pass : leg_before(pass))];
    return time < 0 ? std::nullopt : std::optional(time);
  }

  void run(int rank, VPass pass, int time) {
    times_[at(rank * micro_batches_ + counts_[at(rank)][at(pass)]++)][at(pass)] = time;
  }

 private:
  using Counts = std::array<int, kVPasses>;

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static std::size_t at(VPass pass) { return static_cast<std::size_t>(pass); }

  /// What a pass follows on its own rank, where the V turns and for weight gradients.
  static VPass leg_before(VPass pass) {
    constexpr std::array<VPass, kVPasses> before{VPass::F0, VPass::F0, VPass::F1, VPass::I1, VPass::I1, VPass::I0};
    return before[at(pass)];
  }

  int micro_batches_;
  std::vector<Counts> counts_;
  std::vector<Counts> times_;
};

}  // namespace stagecraft
