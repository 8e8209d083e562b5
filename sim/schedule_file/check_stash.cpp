// Level 7 of the checks of a schedule file: stashes and messages of a rank stay within its memory. `schedule` also
// prints the peak of each rank.

#include <algorithm>

#include <fmt/core.h>

#include "sim/schedule_file/chains.hpp"
#include "sim/schedule_file/checks.hpp"

namespace stagecraft {
namespace {

constexpr double kRounding = 1e-9;  // Sums of shares are off by this much.

/// Follows the memory of a rank along its row.
class StashTracker {
 public:
  StashTracker(const ActionTable& table, const Plan& plan, const StashModel& model)
      : model_(model), chains_(chains_of(plan)), recomputed_(chains_.outputs() / 2, false) {
    for (const auto& row : table.ranks)
      for (const Action& a : row)
        if (a.kind == ActionKind::Recompute) recomputed_[chains_.output(a.stage, a.micro, false)] = true;
  }

  /// Calls visit(index, size) with the memory while each action runs.
  template <class Visit>
  void run(const std::vector<Action>& row, Visit&& visit) const {
    const bool buffers = std::any_of(row.begin(), row.end(), [](const Action& a) { return a.is_message(); });
    double size = model_.resident, later = 0;
    for (int i = 0; i < std::ssize(row); ++i) {
      size += taken(row[i], buffers);
      later += given_back(row[i], buffers);
      visit(i, size);
      if (row[i].is_compute() && row[i].fused) continue;  // Computations that run as one give back together.
      size -= later;
      later = 0;
    }
  }

 private:
  double stash(StageId s) const { return model_.stash.empty() ? model_.each_stash : model_.stash[s.value]; }
  double retained(const Action& a) const {
    return stash(a.stage) * (recomputed_[chains_.output(a.stage, a.micro, false)] ? model_.kept_for_recompute : 1.0);
  }

  double taken(const Action& a, bool buffers) const {
    const bool sends = buffers && a.makes_output() && chains_.target(a.stage, a.passes_gradient()) >= 0;
    const double output = sends ? model_.message : 0;
    switch (a.kind) {
      case ActionKind::Forward:
        return stash(a.stage) + output;
      case ActionKind::Recompute:
        return stash(a.stage) - retained(a);
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
    const bool uses = buffers && a.makes_output() && chains_.source(a.stage, a.passes_gradient()) >= 0;
    const double input = uses ? model_.message : 0;
    switch (a.kind) {
      case ActionKind::Forward:
        return input + stash(a.stage) - retained(a);
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
  std::vector<bool> recomputed_;  ///< By stage and micro-batch: Chains::output() of its activation.
};

}  // namespace

std::vector<StashPeak> stash_peaks(const ActionTable& table, const Plan& plan, const StashModel& model) {
  const StashTracker tracker(table, plan, model);
  std::vector<StashPeak> peaks(table.ranks.size(), {model.resident, -1});
  for (int r = 0; r < std::ssize(peaks); ++r)
    tracker.run(table.ranks[r], [&](int i, double size) {
      if (size > peaks[r].size + kRounding) peaks[r] = {size, i};
    });
  return peaks;
}

std::vector<ScheduleProblem> check_stash(const ActionTable& table, const Plan& plan, const StashModel& model) {
  std::vector<ScheduleProblem> problems;
  if (!model.capacity) return problems;
  const StashTracker tracker(table, plan, model);
  for (int r = 0; r < std::ssize(table.ranks); ++r) {
    bool over = false;
    tracker.run(table.ranks[r], [&](int i, double size) {
      if (over || size <= *model.capacity * (1 + kRounding)) return;
      over = true;
      problems.push_back({"memory", 7, r, i, to_text(table.ranks[r][i]),
                          fmt::format("{0:.12g} are needed here and {1:.12g} are there, {2:.12g} too many", size,
                                      *model.capacity, size - *model.capacity)});
    });
  }
  return problems;
}

}  // namespace stagecraft
