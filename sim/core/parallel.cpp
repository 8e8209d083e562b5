// Reads and writes the order in which ranks are numbered, such as "tp-cp-ep-dp-pp".

#include "sim/core/parallel.hpp"

#include <algorithm>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr EnumArray<RankAxis, std::string_view, 5> kAxisNames = {"tp", "cp", "ep", "dp", "pp"};

}  // namespace

std::string_view to_text(RankAxis axis) { return kAxisNames[axis]; }

std::string to_text(const RankOrder& order) {
  std::string text;
  for (const RankAxis axis : order.axes) text += (text.empty() ? "" : "-") + std::string(to_text(axis));
  return text;
}

std::optional<RankOrder> parse_rank_order(std::string_view text) {
  RankOrder order;
  const RankOrder standard;
  order.written = 0;
  const auto end = [&] { return order.axes.begin() + order.written; };
  const auto add = [&](RankAxis axis) {
    if (std::find(order.axes.begin(), end(), axis) != end()) return false;
    order.axes[order.written++] = axis;
    return true;
  };
  for (const std::string& word : split(std::string(text), '-')) {
    const auto name = std::find(kAxisNames.begin(), kAxisNames.end(), word);
    if (name == kAxisNames.end() || !add(static_cast<RankAxis>(name - kAxisNames.begin()))) return {};
  }
  const int written = order.written;
  for (const RankAxis axis : standard.axes) add(axis);
  order.written = written;
  return order;
}

}  // namespace stagecraft
