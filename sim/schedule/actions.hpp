#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// What a runtime does between two computations, beside them; the first six are those of OpKind.
enum class ActionKind : std::uint8_t {
  Forward,
  Backward,
  InputGradient,
  WeightGradient,
  Recompute,
  Update,
  SendForward,
  ReceiveForward,
  SendBackward,
  ReceiveBackward,
  Unshard,
  Reshard,
  ReduceGradient
};

/// One action of a rank. Messages carry the stage of their own rank: 1RECV_F0 gets what 0SEND_F0 sent.
struct Action {
  ActionKind kind = ActionKind::Forward;
  bool fused = false;  ///< Computation: as Op::fused. A message: in one batch with the next action.
  StageId stage;
  std::int32_t micro = 0;  ///< Of UNSHARD, RESHARD and REDUCE_GRAD: always 0.

  bool is_compute() const { return kind < ActionKind::SendForward; }
  bool is_message() const { return kind >= ActionKind::SendForward && kind <= ActionKind::ReceiveBackward; }
  bool is_send() const { return kind == ActionKind::SendForward || kind == ActionKind::SendBackward; }
  /// Of a message: a gradient, not an activation.
  bool is_gradient() const { return kind == ActionKind::SendBackward || kind == ActionKind::ReceiveBackward; }
  Op op() const { return {static_cast<OpKind>(kind), fused, stage, micro}; }
  friend bool operator==(const Action&, const Action&) = default;
};

/// The actions of each rank in order.
struct ActionTable {
  std::vector<std::vector<Action>> ranks;

  friend bool operator==(const ActionTable&, const ActionTable&) = default;
};

Action action_of(const Op&);
ActionTable actions_of(const Schedule&);
Schedule compute_of(const ActionTable&);  ///< The computations alone.

std::string to_text(const Action&);                    ///< "0F1", "0SEND_F1", "2UNSHARD"
std::optional<Action> parse_action(std::string_view);  ///< The whole text must match.

}  // namespace stagecraft
