#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/ids.hpp"

namespace stagecraft {

/// What a device computes. Sends, receives and memory are added by lower(); a schedule never writes them.
enum class OpKind : std::uint8_t { Forward, Backward, InputGradient, WeightGradient, Recompute, Update };

/// One computation of a stage on one micro-batch. Micro-batches are counted by the stage's own size and run on
/// through the iterations; an Update carries the number of the update instead.
struct Op {
  OpKind kind = OpKind::Forward;
  bool fused = false;  ///< Runs together with the next op of the list, as one: the first waits for all inputs, outputs
                       ///< leave at the end.
  StageId stage;
  std::int32_t micro = 0;

  friend bool operator==(const Op&, const Op&) = default;
};

/// The order in which each device runs its ops. There is no time in it.
struct Schedule {
  std::vector<std::vector<Op>> devices;
  int drain_every = 1;  ///< Iterations between two drains, where nothing is in flight; 0: only the end.

  friend bool operator==(const Schedule&, const Schedule&) = default;
  std::size_t op_count() const;
};

/// Sends a gradient on: B, or I when the halves are apart.
inline bool passes_gradient(OpKind kind) { return kind == OpKind::Backward || kind == OpKind::InputGradient; }
/// The index behind the ops that run as one with the op at `first`.
std::size_t group_end(const std::vector<Op>& ops, std::size_t first);

char letter(OpKind);                           ///< F B I W R U
std::string to_text(const Op&);                ///< "0F1" is stage 0, forward, micro-batch 1; "0U2" its third update.
std::optional<Op> parse_op(std::string_view);  ///< The whole text must match.
std::string to_grid(const Schedule&);          ///< One row a device, in order.

}  // namespace stagecraft
