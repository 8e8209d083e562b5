#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// What a runtime does, computations and what lies between them.
enum class ActionKind : std::uint8_t {
  Forward = value_of(OpKind::Forward),
  Backward = value_of(OpKind::Backward),
  InputGradient = value_of(OpKind::InputGradient),
  WeightGradient = value_of(OpKind::WeightGradient),
  Recompute = value_of(OpKind::Recompute),
  Update = value_of(OpKind::Update),
  Scores = value_of(OpKind::Scores),
  ScoresGradient = value_of(OpKind::ScoresGradient),
  SendForward = kOpKindCount,
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
  bool fused = false;  ///< A computation: see Op::fused. A message: in one batch with the next action.
  StageId stage;
  std::int32_t micro = 0;  ///< Always 0 for UNSHARD, RESHARD and REDUCE_GRAD.

  bool is_compute() const { return kind < ActionKind::SendForward; }
  bool is_message() const { return kind >= ActionKind::SendForward && kind <= ActionKind::ReceiveBackward; }
  bool is_send() const { return kind == ActionKind::SendForward || kind == ActionKind::SendBackward; }
  /// Whether a message carries a gradient, not an activation.
  bool is_gradient() const { return kind == ActionKind::SendBackward || kind == ActionKind::ReceiveBackward; }
  bool is_forward() const { return kind == ActionKind::Forward; }
  bool passes_gradient() const { return is_compute() && stagecraft::passes_gradient(op().kind); }
  bool ends_backward() const { return is_compute() && stagecraft::ends_backward(op().kind); }
  /// Whether another stage may use what a computation makes.
  bool makes_output() const { return is_forward() || passes_gradient(); }
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
Schedule compute_of(const ActionTable&);  ///< The computations, without messages and sharding.

std::string to_text(const Action&);                    ///< "0F1", "0SEND_F1", "2UNSHARD"
std::optional<Action> parse_action(std::string_view);  ///< The whole text must match.

}  // namespace stagecraft
