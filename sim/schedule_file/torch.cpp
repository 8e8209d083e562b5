// What PyTorch makes of a compute-only order (sharding, reductions, messages), for `export pytorch-csv --comms`, and
// which orders PyTorch cannot express.

#include "sim/schedule_file/torch.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/schedule_file/chains.hpp"
#include "sim/schedule_file/comms.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kActiveStages = 3;

/// For each action the next three stages that are used from it on, nearest first.
std::vector<std::array<StageId, kActiveStages>> next_stages(const std::vector<Action>& row) {
  std::vector<std::array<StageId, kActiveStages>> next(row.size());
  std::array<StageId, kActiveStages> recent{};
  for (std::size_t i = row.size(); i-- > 0;) {
    const auto at =
        std::find(recent.begin(), recent.end() - 1, row[i].stage);  // When it is not among them, the last is replaced.
    *at = row[i].stage;
    std::rotate(recent.begin(), at, at + 1);
    next[i] = recent;
  }
  return next;
}

/// Puts UNSHARD before the first use of a stage and RESHARD where the stage is not among the next three that are used;
/// since 2.11 the stages that are left are resharded at the end. O(actions).
std::vector<Action> add_sharding(const std::vector<Action>& row, TorchVersion version) {
  std::vector<Action> out;
  const auto next = next_stages(row);
  std::vector<StageId> active;  // Ascending.
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool inside = i > 0 && row[i - 1].fused;
    if (!inside) {
      const auto wanted = [&](StageId s) { return std::find(next[i].begin(), next[i].end(), s) != next[i].end(); };
      for (const StageId s : active)
        if (!wanted(s)) out.push_back({ActionKind::Reshard, false, s, 0});
      std::erase_if(active, [&](StageId s) { return !wanted(s); });
      for (const StageId s : next[i]) {
        if (!s.valid()) break;
        const auto at = std::lower_bound(active.begin(), active.end(), s);
        if (at != active.end() && *at == s) continue;
        active.insert(at, s);
        out.push_back({ActionKind::Unshard, false, s, 0});
      }
    }
    out.push_back(row[i]);
  }
  if (version != TorchVersion::V2_8)
    for (const StageId s : active) out.push_back({ActionKind::Reshard, false, s, 0});
  return out;
}

/// Puts REDUCE_GRAD after the last B or W of each stage.
std::vector<Action> add_reductions(const std::vector<Action>& row, const Plan& plan) {
  std::vector<Action> out;
  std::unordered_map<int, int> finished;  // Backwards of each stage of the rank.
  std::vector<StageId> due;
  for (const Action& a : row) {
    out.push_back(a);
    if (a.ends_backward() && ++finished[a.stage.value] == plan.micro_batches_run(a.stage)) due.push_back(a.stage);
    if (a.is_compute() && a.fused) continue;
    for (const StageId s : due) out.push_back({ActionKind::ReduceGradient, false, s, 0});
    due.clear();
  }
  return out;
}

}  // namespace

TorchVersion torch_version(std::string_view text) {
  if (text == "2.8") return TorchVersion::V2_8;
  if (text == "2.11") return TorchVersion::V2_11;
  throw InputError(fmt::format("PyTorch '{}' is not known here", text), "write 2.8 or 2.11");
}

ActionTable lower_for_torch(const Schedule& schedule, const Plan& plan, TorchVersion version) {
  ActionTable table = actions_of(schedule);
  for (auto& row : table.ranks) {
    row = add_sharding(row, version);
    if (version != TorchVersion::V2_8) row = add_reductions(row, plan);
  }
  return lower_comms(table, plan);
}

std::vector<ScheduleProblem> why_not_torch(const ActionTable& table, const Plan& plan, int slices,
                                           TorchVersion version) {
  std::vector<ScheduleProblem> problems;
  const auto refuse = [&](std::string why) { problems.push_back({"torch", 1, -1, -1, {}, std::move(why)}); };
  if (slices > 1) refuse("PyTorch does not cut micro-batches into slices of the sequence");
  if (const std::string why = why_no_chains(plan); !why.empty()) refuse(why);
  for (const Stage& stage : plan.stages)
    if (!stage.micros.empty()) {
      refuse("PyTorch runs every micro-batch through one chain of stages; pipelines in both directions are several");
      break;
    }
  for (int r = 0; r < std::ssize(table.ranks); ++r)
    for (int i = 0; i < std::ssize(table.ranks[r]) && problems.size() < kMaxListedProblems; ++i) {
      const Action& a = table.ranks[r][i];
      const auto bad = [&](const char* why) { problems.push_back({"torch", 1, r, i, to_text(a), why}); };
      if (a.kind == ActionKind::Recompute) bad("PyTorch has no op for recomputation");
      if (a.kind == ActionKind::Update) bad("PyTorch has no op for an update");
      if (version != TorchVersion::V2_8) continue;
      if (a.kind == ActionKind::ReduceGradient) bad("PyTorch 2.8 does not know REDUCE_GRAD");
      if (a.is_compute() && a.fused) bad("PyTorch 2.8 does not know OVERLAP_F_B");
    }
  return problems;
}

}  // namespace stagecraft
