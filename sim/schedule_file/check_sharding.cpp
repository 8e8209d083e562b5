// Level 8 of the checks of a schedule file: UNSHARD, RESHARD and REDUCE_GRAD of each stage stand where PyTorch needs
// them.

#include <fmt/core.h>

#include "sim/schedule_file/checks.hpp"

namespace stagecraft {
namespace {

/// Goes over each rank once with what is gathered and what is reduced.
class ShardCheck {
 public:
  ShardCheck(const Plan& plan, TorchVersion version, std::vector<ScheduleProblem>& problems)
      : plan_(plan), version_(version), problems_(problems), seen_(plan.stages.size()) {}

  void run(int rank, const std::vector<Action>& row) {
    for (const Action& a : row)
      if (a.kind == ActionKind::Unshard || a.kind == ActionKind::Reshard) state(a).shards = true;
    for (int i = 0; i < std::ssize(row); ++i)
      if (const char* code = step(row[i]); code && problems_.size() < kMaxListedProblems)
        problems_.push_back({code, 8, rank, i, to_text(row[i]), what(code)});
  }

  void at_end(StageId stage) {
    const State& s = seen_[stage];
    const auto bad = [&](const char* code, ActionKind kind, std::string message) {
      if (problems_.size() < kMaxListedProblems)
        problems_.push_back({code, 8, plan_.stage(stage).leaders.front().value, -1,
                             to_text(Action{kind, false, stage, 0}), std::move(message)});
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
        return s.finished < plan_.micro_batches_run(a.stage) ? "reduce-early" : nullptr;
      }
      default:
        s.finished += a.ends_backward() ? 1 : 0;
        return a.is_compute() && s.shards && !s.gathered ? "sharded" : nullptr;
    }
  }

  static std::string what(std::string_view code) {
    if (code == "unshard-twice") return "the weights of the stage are gathered already";
    if (code == "reshard-twice") return "the weights of the stage are not gathered";
    if (code == "reduce-twice") return "the gradients of the stage were reduced already";
    if (code == "reduce-early") return "a backward of the stage comes after it, so its gradient is not reduced";
    return "the weights of the stage are sharded here; UNSHARD has to come first";
  }

  const Plan& plan_;
  TorchVersion version_;
  std::vector<ScheduleProblem>& problems_;
  IdVector<StageId, State> seen_;
};

}  // namespace

std::vector<ScheduleProblem> check_sharding(const ActionTable& table, const Plan& plan, TorchVersion version) {
  std::vector<ScheduleProblem> problems;
  for (int r = 0; r < std::ssize(table.ranks); ++r) {
    for (int i = 0; i < std::ssize(table.ranks[r]); ++i) {
      const Action& a = table.ranks[r][i];
      const bool exists = a.stage.value < plan.stage_count();
      if (a.is_compute() || a.is_message() || (exists && plan.stage(a.stage).leaders.front().value == r)) continue;
      problems.push_back({exists ? "wrong-rank" : "out-of-range", 8, r, i, to_text(a),
                          fmt::format("stage {} does not run on rank {}", a.stage.value, r)});
    }
  }
  if (!problems.empty()) return problems;
  ShardCheck check(plan, version, problems);
  for (int r = 0; r < std::ssize(table.ranks); ++r) check.run(r, table.ranks[r]);
  for (const StageId stage : plan.stages.ids()) check.at_end(stage);
  return problems;
}

}  // namespace stagecraft
