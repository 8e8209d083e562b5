#include "sim/schedule_file/comms.hpp"

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/schedule/turns.hpp"
#include "sim/schedule_file/chains.hpp"

namespace stagecraft {
namespace {

std::size_t group_end(const std::vector<Action>& row, std::size_t first) {
  while (row[first].is_compute() && row[first].fused && first + 1 < row.size()) ++first;
  return first + 1;
}

void add_receive(const Chains& chains, const Action& a, std::vector<Action>& row) {
  if (!a.makes_output() || chains.source(a.stage, !a.is_forward()) < 0) return;
  row.push_back({a.is_forward() ? ActionKind::ReceiveForward : ActionKind::ReceiveBackward, false, a.stage, a.micro});
}

void add_send(const Chains& chains, const Action& a, std::vector<Action>& row) {
  if (!a.makes_output() || chains.target(a.stage, !a.is_forward()) < 0) return;
  row.push_back({a.is_forward() ? ActionKind::SendForward : ActionKind::SendBackward, false, a.stage, a.micro});
}

/// Every pass takes one action, or one group, of each rank that can run, ranks ascending.
class CommsLowering {
 public:
  CommsLowering(const ActionTable& rows, Chains chains)
      : rows_(rows), chains_(std::move(chains)), turns_(rows.ranks.size()), available_(chains_.outputs(), false) {
    head_.assign(rows.ranks.size(), 0);
    blocked_.assign(rows.ranks.size(), false);
    lowered_.ranks.resize(rows.ranks.size());
  }

  ActionTable run() {
    while (turns_.pass([&](int rank) { step(rank); })) {
    }
    for (std::size_t r = 0; r < head_.size(); ++r)
      if (head_[r] < rows_.ranks[r].size())
        throw Infeasible("cycle", fmt::format("rank {} can never run {}", r, to_text(rows_.ranks[r][head_[r]])));
    return std::move(lowered_);
  }

 private:
  bool ready(const Action& a) const {
    const bool gradient = a.passes_gradient();
    if (!a.makes_output() || !chains_.has_input(a.stage, gradient)) return true;
    return available_[chains_.input(a.stage, a.micro, gradient)];
  }

  bool group_ready(int rank) const {
    const auto& row = rows_.ranks[rank];
    const std::size_t first = head_[rank];
    if (first == row.size()) return false;
    for (std::size_t i = first; i < group_end(row, first); ++i)
      if (!ready(row[i])) return false;
    return true;
  }

  void step(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const auto& row = rows_.ranks[r];
    auto& head = head_[r];
    if (head == row.size()) return;
    if (!group_ready(rank)) {
      blocked_[r] = true;
      return;
    }
    const std::size_t first = head;
    head = group_end(row, first);
    for (std::size_t i = first; i < head; ++i) lowered_.ranks[r].push_back(row[i]);
    for (std::size_t i = first; i < head; ++i) pass_on(rank, row[i]);
    turns_.later(rank);
  }

  void pass_on(int rank, const Action& a) {
    if (!a.makes_output()) return;
    const bool gradient = a.passes_gradient();
    available_[chains_.output(a.stage, a.micro, gradient)] = true;
    const int other = chains_.target(a.stage, gradient);
    if (other < 0) return;
    add_send(chains_, a, lowered_.ranks[rank]);
    const StageId stage{gradient ? a.stage - 1 : a.stage + 1};
    const auto o = static_cast<std::size_t>(other);
    lowered_.ranks[o].push_back(
        {gradient ? ActionKind::ReceiveBackward : ActionKind::ReceiveForward, false, stage, a.micro});
    if (!blocked_[o] || !group_ready(other)) return;
    blocked_[o] = false;
    turns_.wake(other, rank);
  }

  const ActionTable& rows_;
  Chains chains_;
  Turns turns_;
  std::vector<bool> available_;  ///< [output]: made, and received where it is used.
  std::vector<std::size_t> head_;
  std::vector<bool> blocked_;
  ActionTable lowered_;
};

/// The row with its messages: the receives of a group stand before the group `ahead` groups earlier.
std::vector<Action> with_comms(const std::vector<Action>& row, const Chains& chains, std::size_t ahead) {
  std::vector<Action> out;
  std::size_t received = 0, group = 0, received_groups = 0;
  for (std::size_t first = 0, end = 0; first < row.size(); first = end, ++group) {
    end = group_end(row, first);
    for (; received < row.size() && received_groups <= group + ahead; ++received_groups) {
      const std::size_t stop = group_end(row, received);
      for (; received < stop; ++received) add_receive(chains, row[received], out);
    }
    out.insert(out.end(), row.begin() + first, row.begin() + end);
    for (std::size_t i = first; i < end; ++i) add_send(chains, row[i], out);
  }
  return out;
}

}  // namespace

ActionTable lower_comms(const ActionTable& rows, const Plan& plan) {
  return CommsLowering(rows, chains_of(plan)).run();
}

ActionTable add_comms(const Schedule& schedule, const Plan& plan, CommsPlacement placement) {
  if (placement == CommsPlacement::Lowered) return lower_comms(actions_of(schedule), plan);
  const Chains chains = chains_of(plan);
  ActionTable table = actions_of(schedule);
  for (auto& row : table.ranks) row = with_comms(row, chains, placement == CommsPlacement::Prefetch ? 1 : 0);
  return table;
}

}  // namespace stagecraft
