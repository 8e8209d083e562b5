#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Stages in a row, each on one rank; stage s may feed stage s + 1. PyTorch knows one such chain; here there may be
/// several.
struct Chains {
  IdVector<StageId, int> rank;  ///< [stage]
  std::vector<bool> fed;        ///< [stage]: the stage before it feeds it.
  int micro_batches = 1;

  int stages() const { return static_cast<int>(rank.size()); }
  bool feeds(StageId s) const { return s.value + 1 < stages() && fed[s.value + 1]; }
  bool is_fed(StageId s) const { return fed[s.value]; }
  int rank_of(StageId s) const { return rank[s]; }

  /// Whether a forward, or the gradient of a backward, comes from another stage.
  bool has_input(StageId s, bool gradient) const { return gradient ? feeds(s) : is_fed(s); }
  /// The rank that makes the input of a forward, or of a backward; -1: none, or the stage's own.
  int source(StageId, bool gradient) const;
  /// The rank that uses the output; -1: none, or the stage's own.
  int target(StageId s, bool gradient) const { return source(s, !gradient); }

  /// Numbers the outputs: activations of every stage and micro-batch, then gradients.
  std::size_t output(StageId s, int micro, bool gradient) const {
    return ((gradient ? rank.size() : 0) + s.value) * micro_batches + micro;
  }
  /// The output that an op takes its input from; it must have one.
  std::size_t input(StageId s, int micro, bool gradient) const {
    return output(StageId{gradient ? s.value + 1 : s.value - 1}, micro, gradient);
  }
  std::size_t outputs() const { return 2 * rank.size() * micro_batches; }
};

/// Why a plan is more than chains of stages on one rank each with equal micro-batches; empty when it is not.
std::string why_no_chains(const Plan&);
/// Throws InputError with that reason.
Chains chains_of(const Plan&);

}  // namespace stagecraft
