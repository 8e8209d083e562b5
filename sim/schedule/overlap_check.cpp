#include "sim/schedule/overlap_check.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace stagecraft {
namespace {

/// An op of a group, and its place in the row.
struct Member {
  Op op;
  int index;
};

/// Appends a problem for each member that stands behind one it needs: those with the same key need each other.
template <class Key>
void find_needs(std::vector<Member>& group, int rank, const Key& key, std::vector<ScheduleProblem>& problems) {
  std::sort(group.begin(), group.end(), [&](const Member& a, const Member& b) {
    return std::tuple_cat(key(a.op), std::tuple(a.index)) < std::tuple_cat(key(b.op), std::tuple(b.index));
  });
  for (std::size_t i = 1; i < group.size(); ++i) {
    if (key(group[i - 1].op) != key(group[i].op)) continue;
    const std::string needed = to_text(group[i - 1].op), op = to_text(group[i].op);
    problems.push_back(
        {"local-order", 3, rank, group[i].index, op,
         fmt::format("{} needs {}, so the two cannot run as one: they would start together", op, needed)});
  }
}

}  // namespace

std::vector<ScheduleProblem> check_overlaps(const Schedule& schedule, int slices, std::size_t most) {
  const auto piece = [](const Op& op) { return std::tuple(op.stage, op.micro); };
  const auto sequence = [&](const Op& op) { return std::tuple(op.stage, op.micro / slices, passes_gradient(op.kind)); };
  std::vector<ScheduleProblem> problems;
  std::vector<Member> group, sliced;
  for (std::size_t d = 0; d < schedule.devices.size(); ++d) {
    const auto& row = schedule.devices[d];
    for (std::size_t first = 0, end = 0; first < row.size() && problems.size() < most; first = end) {
      end = group_end(row, first);
      if (end - first == 1) continue;
      group.clear(), sliced.clear();
      for (std::size_t i = first; i < end; ++i) {
        group.push_back({row[i], static_cast<int>(i)});
        if (slices > 1 && (row[i].kind == OpKind::Forward || passes_gradient(row[i].kind)))
          sliced.push_back(group.back());
      }
      find_needs(group, static_cast<int>(d), piece, problems);
      find_needs(sliced, static_cast<int>(d), sequence, problems);
    }
  }
  if (problems.size() > most) problems.resize(most);
  return problems;
}

}  // namespace stagecraft
