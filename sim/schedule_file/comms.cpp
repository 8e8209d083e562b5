// Adds messages to an order of computations: as PyTorch places them, right before and after their use, or received one
// op earlier.

#include "sim/schedule_file/comms.hpp"

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/schedule/dispatcher.hpp"
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

/// Runs the rows and appends the messages of each output on both ranks when it is made.
class CommsLowering {
 public:
  CommsLowering(const ActionTable& rows, Chains chains)
      : rows_(rows), chains_(std::move(chains)), available_(chains_.outputs(), false), dispatcher_(rows.ranks, *this) {
    lowered_.ranks.resize(rows.ranks.size());
  }

  ActionTable run() {
    if (!dispatcher_.run())
      for (int r = 0; r < std::ssize(rows_.ranks); ++r)
        if (!dispatcher_.ended(r))
          throw Infeasible("cycle",
                           fmt::format("rank {} can never run {}", r, to_text(rows_.ranks[r][dispatcher_.head(r)])));
    return std::move(lowered_);
  }

  bool ready(int rank, std::size_t index) const {
    const Action& a = rows_.ranks[rank][index];
    const bool gradient = a.passes_gradient();
    if (!a.makes_output() || !chains_.has_input(a.stage, gradient)) return true;
    return available_[chains_.input(a.stage, a.micro, gradient)];
  }

  void arrive(int, const Action&) {}

  void take(int rank, std::size_t first, std::size_t end) {
    const auto& row = rows_.ranks[rank];
    for (std::size_t i = first; i < end; ++i) lowered_.ranks[rank].push_back(row[i]);
    for (std::size_t i = first; i < end; ++i) pass_on(rank, row[i]);
  }

 private:
  void pass_on(int rank, const Action& a) {
    if (!a.makes_output()) return;
    const bool gradient = a.passes_gradient();
    available_[chains_.output(a.stage, a.micro, gradient)] = true;
    const int other = chains_.target(a.stage, gradient);
    if (other < 0) return;
    add_send(chains_, a, lowered_.ranks[rank]);
    const StageId stage{gradient ? a.stage.value - 1 : a.stage.value + 1};
    lowered_.ranks[other].push_back(
        {gradient ? ActionKind::ReceiveBackward : ActionKind::ReceiveForward, false, stage, a.micro});
    dispatcher_.wake(other);
  }

  const ActionTable& rows_;
  Chains chains_;
  std::vector<bool> available_;  ///< [output]: made, and received where it is used.
  Dispatcher<Action, CommsLowering> dispatcher_;
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
