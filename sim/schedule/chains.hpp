#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Stages in a row, each on one rank; stage s may feed s + 1. What PyTorch knows, but for several chains.
struct Chains {
  std::vector<int> rank;  ///< Of each stage.
  std::vector<bool> fed;  ///< Stage s - 1 feeds stage s.
  int micro_batches = 1;

  int stages() const { return static_cast<int>(rank.size()); }
  bool feeds(StageId s) const { return s + 1 < stages() && fed[static_cast<std::size_t>(s) + 1]; }
  bool is_fed(StageId s) const { return fed[s]; }
  int rank_of(StageId s) const { return rank[s]; }
  /// The rank that makes the input of a forward, or of a backward; -1: none, or the stage's own.
  int source(StageId, bool gradient) const;
  /// The rank that uses the output.
  int target(StageId s, bool gradient) const { return source(s, !gradient); }
  /// Numbers the outputs: activations of every stage and micro-batch, then gradients.
  std::size_t output(StageId s, int micro, bool gradient) const {
    return (static_cast<std::size_t>(gradient) * rank.size() + static_cast<std::size_t>(s)) *
               static_cast<std::size_t>(micro_batches) +
           static_cast<std::size_t>(micro);
  }
  std::size_t outputs() const { return 2 * rank.size() * static_cast<std::size_t>(micro_batches); }
};

/// Why a plan is more than chains of stages on one rank each with equal micro-batches; empty when it is not.
std::string why_no_chains(const Plan&);
/// Throws InputError with the reason.
Chains chains_of(const Plan&);

}  // namespace stagecraft
