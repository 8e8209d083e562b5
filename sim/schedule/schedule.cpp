// Ops and schedules as text, ops read from text, and the result of a search for an order as a sentence.

#include "sim/schedule/schedule.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/text.hpp"

namespace stagecraft {
std::vector<std::span<const Op>> Schedule::device_rows() const& {
  std::vector<std::span<const Op>> rows;
  for (int d = 0; d < device_count(); ++d) rows.emplace_back(row(DeviceId{d}));
  return rows;
}

std::size_t Schedule::op_count() const {
  std::size_t count = 0;
  for (int d = 0; d < device_count(); ++d) count += row(DeviceId{d}).size();
  return count;
}

std::size_t group_end(const std::vector<Op>& ops, std::size_t first) {
  while (ops[first].fused && first + 1 < ops.size()) ++first;
  return first + 1;
}

std::string to_text(const Op& op) { return fmt::format("{}{}{}", op.stage.value, letter(op.kind), op.micro); }

std::optional<Op> parse_op(std::string_view text) {
  const auto stage = read_number(text);
  if (!stage || text.empty()) return {};
  const auto label =
      std::find_if(kOpLabels.begin(), kOpLabels.end(), [&](const WorkLabel& l) { return l.letter == text.front(); });
  if (label == kOpLabels.end()) return {};
  text.remove_prefix(1);
  const auto micro = read_number(text);
  if (!micro || !text.empty()) return {};
  return Op{static_cast<OpKind>(label - kOpLabels.begin()), false, StageId{*stage}, *micro};
}

std::string to_text(const ScheduleSearch& s, const std::function<std::string(Seconds)>& time) {
  const std::string text = fmt::format("{} {}, ", s.period ? "period" : "iteration", time(s.time));
  constexpr double kSame = 1e-9;
  if (s.gap() <= kSame) return text + fmt::format("as short as any order can be ({})", s.reason);
  const double percent = std::max(100 * s.gap(), 1e-4);
  return text + fmt::format("at most {} % too long: no order is shorter than {} ({})", two_digits(percent),
                            time(s.bound), s.reason);
}

std::string to_grid(const Schedule& schedule) {
  std::string text;
  for (int d = 0; d < schedule.device_count(); ++d) {
    text += fmt::format("device {:<3}|", d);
    bool inside = false;
    for (const Op& op : schedule.row(DeviceId{d})) {
      const bool opens = op.fused && !inside;
      text +=
          fmt::format(" {:>5}", fmt::format("{}{}{}", opens ? "(" : "", to_text(op), inside && !op.fused ? ")" : ""));
      inside = op.fused;
    }
    text += '\n';
  }
  return text;
}

}  // namespace stagecraft
