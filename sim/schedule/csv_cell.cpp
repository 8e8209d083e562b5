#include "sim/schedule/csv_cell.hpp"

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr int kMostStages = 1 << 20, kMostMicroBatches = 1 << 24;

std::optional<Action> read_action(std::string_view cell) {
  const auto action = parse_action(cell);
  if (!action || action->kind == ActionKind::Update || action->stage >= kMostStages ||
      action->micro >= kMostMicroBatches)
    return {};
  return action;
}

bool is_above(std::string_view number, int most) {
  if (number.empty() || number.front() == '0') return false;
  const auto value = read_number(number);
  return !value || *value >= most;
}

/// Why an op is none because of a number alone; empty when that is not the reason.
std::string too_large(std::string_view op) {
  const std::size_t kind = op.find_first_not_of(kDigits), last = op.find_last_not_of(kDigits);
  if (kind == 0 || kind == std::string_view::npos) return {};
  const std::string_view stage = op.substr(0, kind), micro = op.substr(last + 1);
  if (!parse_action(fmt::format("0{}{}", op.substr(kind, last + 1 - kind), micro.empty() ? "" : "0"))) return {};
  if (is_above(stage, kMostStages)) return fmt::format("stage {} is too large: the last is {}", stage, kMostStages - 1);
  if (is_above(micro, kMostMicroBatches))
    return fmt::format("micro-batch {} is too large: the last is {}", micro, kMostMicroBatches - 1);
  return {};
}

}  // namespace

std::string_view without_quotes(std::string_view cell) {
  if (cell.size() < 2 || cell.front() != '"' || cell.back() != '"') return cell;
  return trim(cell.substr(1, cell.size() - 2));
}

bool read_cell(std::string_view cell, std::vector<Action>& row) {
  if (cell.front() != '(') {
    const auto action = read_action(cell);
    if (action) row.push_back(*action);
    return action.has_value();
  }
  if (!cell.ends_with(kOverlapEnd)) return false;
  cell.remove_prefix(1);
  cell.remove_suffix(kOverlapEnd.size());
  for (std::size_t parts = 1;; ++parts) {
    const std::size_t end = cell.find(';');
    auto action = read_action(trim(cell.substr(0, end)));
    if (!action || !action->is_compute()) return false;
    action->fused = end != std::string_view::npos;
    row.push_back(*action);
    if (!action->fused) return parts >= 2;
    cell.remove_prefix(end + 1);
  }
}

CellFault fault_of(std::string_view cell) {
  if (const auto action = parse_action(cell); action && action->kind == ActionKind::Update)
    return {fmt::format("'{}' is an update; each is put behind the last backward of its stage by itself", cell),
            cell_help()};
  std::string_view ops = cell;
  if (ops.starts_with('(') && ops.ends_with(kOverlapEnd)) ops = ops.substr(1, ops.size() - 1 - kOverlapEnd.size());
  for (const std::string& op : split(ops, ';'))
    if (const std::string why = too_large(trim(op)); !why.empty())
      return {fmt::format("'{}': {}", cell, why), "count stages and micro-batches from 0"};
  return {fmt::format("'{}' is not an op", cell), cell_help()};
}

std::string cell_help() { return "write stage, kind and micro-batch: 0F1, 2B0, 1I3, 1W3, 1R3 or (0F3;7B5)OVERLAP_F_B"; }

}  // namespace stagecraft
