#include "sim/schedule/stash.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/schedule/chains.hpp"

namespace stagecraft {
namespace {

constexpr double kRounding = 1e-9;  // Of sums of shares.

/// Walks one rank. `visit(index, size)` sees the memory while each action runs.
class Walk {
 public:
  Walk(const ActionTable& table, const Plan& plan, const StashModel& model)
      : model_(model), chains_(chains_of(plan)), recomputed_(chains_.outputs() / 2, false) {
    for (const auto& row : table.ranks)
      for (const Action& a : row)
        if (a.kind == ActionKind::Recompute) recomputed_[chains_.output(a.stage, a.micro, false)] = true;
  }

  template <class Visit>
  void run(const std::vector<Action>& row, Visit&& visit) const {
    const bool buffers = std::any_of(row.begin(), row.end(), [](const Action& a) { return a.is_message(); });
    double size = model_.resident, later = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      size += taken(row[i], buffers);
      later += given_back(row[i], buffers);
      visit(i, size);
      if (row[i].is_compute() && row[i].fused) continue;  // Those that run as one give back together.
      size -= later;
      later = 0;
    }
  }

 private:
  double stash(StageId s) const { return model_.stash.empty() ? model_.each_stash : model_.stash[s]; }
  double kept(const Action& a) const {
    return stash(a.stage) * (recomputed_[chains_.output(a.stage, a.micro, false)] ? model_.kept_for_recompute : 1.0);
  }

  double taken(const Action& a, bool buffers) const {
    const bool sends = buffers && a.is_compute() && a.kind != ActionKind::WeightGradient &&
                       a.kind != ActionKind::Recompute && chains_.target(a.stage, a.kind != ActionKind::Forward) >= 0;
    const double output = sends ? model_.message : 0;
    switch (a.kind) {
      case ActionKind::Forward:
        return stash(a.stage) + output;
      case ActionKind::Recompute:
        return stash(a.stage) - kept(a);
      case ActionKind::Backward:
      case ActionKind::InputGradient:
        return output;
      case ActionKind::ReceiveForward:
      case ActionKind::ReceiveBackward:
        return model_.message;
      default:
        return 0;
    }
  }

  double given_back(const Action& a, bool buffers) const {
    const bool gradient = a.kind == ActionKind::Backward || a.kind == ActionKind::InputGradient;
    const bool uses = buffers && (gradient || a.kind == ActionKind::Forward) && chains_.source(a.stage, gradient) >= 0;
    const double input = uses ? model_.message : 0;
    switch (a.kind) {
      case ActionKind::Forward:
        return input + stash(a.stage) - kept(a);
      case ActionKind::Backward:
        return input + stash(a.stage);
      case ActionKind::InputGradient:
        return input + stash(a.stage) * model_.freed_at_input;
      case ActionKind::WeightGradient:
        return stash(a.stage) * (1 - model_.freed_at_input);
      case ActionKind::SendForward:
      case ActionKind::SendBackward:
        return model_.message;
      default:
        return 0;
    }
  }

  const StashModel& model_;
  Chains chains_;
  std::vector<bool> recomputed_;  ///< Of each stage and micro-batch.
};

}  // namespace

std::vector<StashPeak> stash_peaks(const ActionTable& table, const Plan& plan, const StashModel& model) {
  const Walk walk(table, plan, model);
  std::vector<StashPeak> peaks(table.ranks.size(), {model.resident, -1});
  for (std::size_t r = 0; r < peaks.size(); ++r)
    walk.run(table.ranks[r], [&](std::size_t i, double size) {
      if (size > peaks[r].size + kRounding) peaks[r] = {size, static_cast<int>(i)};
    });
  return peaks;
}

std::vector<ScheduleProblem> check_stash(const ActionTable& table, const Plan& plan, const StashModel& model) {
  std::vector<ScheduleProblem> problems;
  if (!model.capacity) return problems;
  const Walk walk(table, plan, model);
  for (std::size_t r = 0; r < table.ranks.size(); ++r) {
    bool over = false;
    walk.run(table.ranks[r], [&](std::size_t i, double size) {
      if (over || size <= *model.capacity * (1 + kRounding)) return;
      over = true;
      problems.push_back({"memory", 7, static_cast<int>(r), static_cast<int>(i), to_text(table.ranks[r][i]),
                          fmt::format("{0:.12g} are needed here and {1:.12g} are there, {2:.12g} too many", size,
                                      *model.capacity, size - *model.capacity)});
    });
  }
  return problems;
}

}  // namespace stagecraft
