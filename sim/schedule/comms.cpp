#include "sim/schedule/comms.hpp"

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/schedule/chains.hpp"
#include "sim/schedule/sharding.hpp"
#include "sim/schedule/turns.hpp"

namespace stagecraft {
namespace {

bool is_forward(const Action& a) { return a.kind == ActionKind::Forward; }
bool makes_output(const Action& a) {
  return is_forward(a) || a.kind == ActionKind::Backward || a.kind == ActionKind::InputGradient;
}

std::size_t group_end(const std::vector<Action>& row, std::size_t first) {
  while (row[first].is_compute() && row[first].fused && first + 1 < row.size()) ++first;
  return first + 1;
}

void add_receive(const Chains& chains, const Action& a, std::vector<Action>& row) {
  if (!makes_output(a) || chains.source(a.stage, !is_forward(a)) < 0) return;
  row.push_back({is_forward(a) ? ActionKind::ReceiveForward : ActionKind::ReceiveBackward, false, a.stage, a.micro});
}

/// The send, and the receive on the other rank when there is a place for it.
void add_send(const Chains& chains, const Action& a, std::vector<Action>& row) {
  if (!makes_output(a) || chains.target(a.stage, !is_forward(a)) < 0) return;
  row.push_back({is_forward(a) ? ActionKind::SendForward : ActionKind::SendBackward, false, a.stage, a.micro});
}

/// Every pass takes one action of each rank that can run, ranks ascending.
class Lowering {
 public:
  Lowering(const ActionTable& rows, const Chains& chains)
      : rows_(rows), chains_(chains), turns_(rows.ranks.size()), there_(chains.outputs(), false) {
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
    if (!makes_output(a)) return true;
    const bool gradient = !is_forward(a);
    if (!(gradient ? chains_.feeds(a.stage) : chains_.is_fed(a.stage))) return true;
    return there_[chains_.output(StageId{gradient ? a.stage + 1 : a.stage - 1}, a.micro, gradient)];
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
    if (!makes_output(a)) return;
    const bool gradient = !is_forward(a);
    there_[chains_.output(a.stage, a.micro, gradient)] = true;
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
  const Chains& chains_;
  Turns turns_;
  std::vector<bool> there_;  ///< Of each output: made, and received where it is used.
  std::vector<std::size_t> head_;
  std::vector<bool> blocked_;
  ActionTable lowered_;
};

/// The receives of a group stand before the group `ahead` groups earlier.
std::vector<Action> beside(const std::vector<Action>& row, const Chains& chains, std::size_t ahead) {
  std::vector<Action> out;
  std::size_t received = 0, group = 0, received_groups = 0;
  for (std::size_t first = 0, end = 0; first < row.size(); first = end, ++group) {
    end = group_end(row, first);
    for (; received < row.size() && received_groups <= group + ahead; ++received_groups) {
      const std::size_t stop = group_end(row, received);
      for (; received < stop; ++received) add_receive(chains, row[received], out);
    }
    out.insert(out.end(), row.begin() + static_cast<std::ptrdiff_t>(first),
               row.begin() + static_cast<std::ptrdiff_t>(end));
    for (std::size_t i = first; i < end; ++i) add_send(chains, row[i], out);
  }
  return out;
}

}  // namespace

TorchVersion torch_version(std::string_view text) {
  if (text == "2.8") return TorchVersion::V2_8;
  if (text == "2.11") return TorchVersion::V2_11;
  throw InputError(fmt::format("PyTorch '{}' is not known here", text), "write 2.8 or 2.11");
}

ActionTable add_comms(const Schedule& schedule, const Plan& plan, CommsPlacement placement) {
  const Chains chains = chains_of(plan);
  ActionTable table = actions_of(schedule);
  if (placement == CommsPlacement::Lowered) return Lowering(table, chains).run();
  for (auto& row : table.ranks) row = beside(row, chains, placement == CommsPlacement::Prefetch ? 1 : 0);
  return table;
}

ActionTable lower_for_torch(const Schedule& schedule, const Plan& plan, TorchVersion version) {
  const Chains chains = chains_of(plan);
  ActionTable table = actions_of(schedule);
  for (auto& row : table.ranks) {
    row = add_sharding(row, version);
    if (version != TorchVersion::V2_8) row = add_reductions(row, plan);
  }
  return Lowering(table, chains).run();
}

}  // namespace stagecraft
