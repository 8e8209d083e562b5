#include "sim/schedule/sharding.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr std::size_t kActiveStages = 3;

bool ends_backward(const Action& a) { return a.kind == ActionKind::Backward || a.kind == ActionKind::WeightGradient; }

/// The stages that are used from each action on, the next three, nearest first.
std::vector<std::array<StageId, kActiveStages>> next_stages(const std::vector<Action>& row) {
  std::vector<std::array<StageId, kActiveStages>> next(row.size());
  std::array<StageId, kActiveStages> recent{};
  for (std::size_t i = row.size(); i-- > 0;) {
    const auto at = std::find(recent.begin(), recent.end() - 1, row[i].stage);  // Where it is not, the last goes.
    *at = row[i].stage;
    std::rotate(recent.begin(), at, at + 1);
    next[i] = recent;
  }
  return next;
}

/// One pass over a rank with what is gathered and what is reduced.
class ShardCheck {
 public:
  ShardCheck(const Plan& plan, TorchVersion version, std::vector<ScheduleProblem>& problems)
      : plan_(plan), version_(version), problems_(problems), seen_(plan.stages.size()) {}

  void run(int rank, const std::vector<Action>& row) {
    for (const Action& a : row)
      if (a.kind == ActionKind::Unshard || a.kind == ActionKind::Reshard) state(a).shards = true;
    for (std::size_t i = 0; i < row.size(); ++i)
      if (const char* code = step(row[i]); code && problems_.size() < kMost)
        problems_.push_back({code, 8, rank, static_cast<int>(i), to_text(row[i]), what(code)});
  }

  void at_end(StageId stage) {
    const State& s = seen_[stage];
    const auto bad = [&](const char* code, ActionKind kind, std::string message) {
      if (problems_.size() < kMost)
        problems_.push_back({code, 8, plan_.stage(stage).devices.front(), -1, to_text(Action{kind, false, stage, 0}),
                             std::move(message)});
    };
    if (s.gathered && version_ != TorchVersion::V2_8)
      bad("never-resharded", ActionKind::Reshard,
          fmt::format("the weights of stage {} are still gathered at the end", stage.value));
    if (!s.reduced && version_ != TorchVersion::V2_8)
      bad("never-reduced", ActionKind::ReduceGradient,
          fmt::format("the gradients of stage {} are never scaled and reduced", stage.value));
  }

 private:
  struct State {
    bool shards = false, gathered = false, reduced = false;
    int finished = 0;
  };
  static constexpr std::size_t kMost = 20;
  State& state(const Action& a) { return seen_[a.stage]; }

  const char* step(const Action& a) {
    State& s = state(a);
    switch (a.kind) {
      case ActionKind::Unshard: {
        const bool twice = s.gathered;
        s.gathered = true;
        return twice ? "unshard-twice" : nullptr;
      }
      case ActionKind::Reshard: {
        const bool there = s.gathered;
        s.gathered = false;
        return there ? nullptr : "reshard-twice";
      }
      case ActionKind::ReduceGradient: {
        const bool twice = s.reduced;
        s.reduced = true;
        if (twice) return "reduce-twice";
        return s.finished < plan_.own_micro_batches(a.stage) ? "reduce-early" : nullptr;
      }
      default:
        s.finished += ends_backward(a) ? 1 : 0;
        return a.is_compute() && s.shards && !s.gathered ? "sharded" : nullptr;
    }
  }

  static std::string what(std::string_view code) {
    if (code == "unshard-twice") return "the weights of the stage are gathered already";
    if (code == "reshard-twice") return "the weights of the stage are not gathered";
    if (code == "reduce-twice") return "the gradients of the stage were reduced already";
    if (code == "reduce-early") return "a backward of the stage comes behind it, so its gradient is left out";
    return "the weights of the stage are sharded here; UNSHARD has to come first";
  }

  const Plan& plan_;
  TorchVersion version_;
  std::vector<ScheduleProblem>& problems_;
  std::vector<State> seen_;
};

}  // namespace

std::vector<ScheduleProblem> check_sharding(const ActionTable& table, const Plan& plan, TorchVersion version) {
  std::vector<ScheduleProblem> problems;
  for (std::size_t r = 0; r < table.ranks.size(); ++r) {
    for (std::size_t i = 0; i < table.ranks[r].size(); ++i) {
      const Action& a = table.ranks[r][i];
      const bool exists = a.stage < plan.stage_count();
      if (a.is_compute() || a.is_message() || (exists && plan.stage(a.stage).devices.front() == static_cast<int>(r)))
        continue;
      problems.push_back({exists ? "wrong-rank" : "out-of-range", 8, static_cast<int>(r), static_cast<int>(i),
                          to_text(a), fmt::format("stage {} does not run on rank {}", a.stage.value, r)});
    }
  }
  if (!problems.empty()) return problems;
  ShardCheck check(plan, version, problems);
  for (std::size_t r = 0; r < table.ranks.size(); ++r) check.run(static_cast<int>(r), table.ranks[r]);
  for (int stage = 0; stage < plan.stage_count(); ++stage) check.at_end(StageId{stage});
  return problems;
}

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

std::vector<Action> add_reductions(const std::vector<Action>& row, const Plan& plan) {
  std::vector<Action> out;
  std::unordered_map<int, int> finished;  // Of each stage of the rank.
  std::vector<StageId> due;
  for (const Action& a : row) {
    out.push_back(a);
    if (ends_backward(a) && ++finished[a.stage] == plan.own_micro_batches(a.stage)) due.push_back(a.stage);
    if (a.is_compute() && a.fused) continue;
    for (const StageId s : due) out.push_back({ActionKind::ReduceGradient, false, s, 0});
    due.clear();
  }
  return out;
}

}  // namespace stagecraft
