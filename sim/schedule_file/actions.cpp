// Converts between ops, actions (ops, messages, sharding and reductions) and their words in PyTorch's CSV.

#include "sim/schedule_file/actions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The actions after those that compute, whose words are the letters of their ops.
constexpr std::string_view kOtherWords[] = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                            "UNSHARD", "RESHARD", "REDUCE_GRAD"};
static_assert(std::size(kOtherWords) == static_cast<std::size_t>(ActionKind::ReduceGradient) + 1 - kOpKindCount);

std::string_view word_of(ActionKind kind) {
  const auto number = static_cast<std::size_t>(kind);
  if (number < kOpKindCount) return {&kOpLabels[static_cast<OpKind>(kind)].letter, 1};
  return kOtherWords[number - kOpKindCount];
}

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || c == '_'; }

std::optional<ActionKind> read_kind(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_letter(text[length])) ++length;
  const std::string_view word = text.substr(0, length);
  for (std::size_t k = 0; k < kOpKindCount + std::size(kOtherWords); ++k) {
    const auto kind = static_cast<ActionKind>(k);
    if (word != word_of(kind)) continue;
    text.remove_prefix(length);
    return kind;
  }
  return {};
}

}  // namespace

Action action_of(const Op& op) { return {static_cast<ActionKind>(op.kind), op.fused, op.stage, op.micro}; }

ActionTable actions_of(const Schedule& schedule) {
  ActionTable table;
  for (const auto& ops : schedule.device_rows()) {
    auto& row = table.ranks.emplace_back();
    row.reserve(ops.size());
    for (const Op& op : ops) row.push_back(action_of(op));
  }
  return table;
}

Schedule compute_of(const ActionTable& table) {
  Schedule schedule;
  for (const auto& row : table.ranks) {
    auto& ops = schedule.ranks.emplace_back();
    const auto computes = [](const Action& action) { return action.is_compute(); };
    ops.reserve(std::count_if(row.begin(), row.end(), computes));
    for (const Action& action : row)
      if (action.is_compute()) ops.push_back(action.op());
  }
  return schedule;
}

std::string to_text(const Action& action) {
  const std::string_view word = word_of(action.kind);
  if (action.kind >= ActionKind::Unshard) return fmt::format("{}{}", action.stage.value, word);
  return fmt::format("{}{}{}", action.stage.value, word, action.micro);
}

std::optional<Action> parse_action(std::string_view text) {
  const auto stage = read_number(text);
  if (!stage) return {};
  const auto kind = read_kind(text);
  if (!kind) return {};
  Action action{*kind, false, StageId{*stage}, 0};
  if (action.kind < ActionKind::Unshard) {
    const auto micro = read_number(text);
    if (!micro) return {};
    action.micro = *micro;
  }
  if (!text.empty()) return {};
  return action;
}

}  // namespace stagecraft
