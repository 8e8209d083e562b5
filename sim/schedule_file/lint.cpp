// Level 10 of the checks of a schedule file: what runs but may not be what was meant.

#include <algorithm>

#include <fmt/core.h>

#include "sim/schedule_file/chains.hpp"
#include "sim/schedule_file/checks.hpp"

namespace stagecraft {
namespace {

constexpr int kNever = -1;

/// The times at which everything would run if every op took one unit and transfers took none.
class UnitTimes {
 public:
  UnitTimes(const Schedule& schedule, const Plan& plan, const Chains& chains)
      : schedule_(schedule), chains_(chains), end_(chains.outputs(), kNever) {
    head_.assign(schedule.device_count(), 0);
    free_.assign(schedule.device_count(), 0);
    weights_began_.assign(schedule.device_count(), kNever);
    const GlobalOrder order = global_order(schedule, plan, 1);
    for (std::size_t i = 0; i < order.devices.size();) i += step(order.devices[i]);
  }

  int transfers = 0, exposed = 0;
  bool splits = false;  ///< Whether any backward is split.
  bool fills = false;   ///< Whether any W runs where its rank would wait.

 private:
  /// The time at which the input of an op is available.
  int arrival(const Op& op) const {
    const bool gradient = passes_gradient(op.kind);
    if ((!gradient && op.kind != OpKind::Forward) || !chains_.has_input(op.stage, gradient)) return 0;
    return end_[chains_.input(op.stage, op.micro, gradient)];
  }

  std::size_t step(DeviceId device) {
    const DeviceId d = device;
    const auto& row = schedule_.row(device);
    const std::size_t first = head_[d], last = group_end(row, first);
    head_[d] = last;
    int ready = 0;
    for (std::size_t i = first; i < last; ++i) ready = std::max(ready, arrival(row[i]));
    const int start = std::max(ready, free_[d]), end = start + static_cast<int>(last - first);
    for (std::size_t i = first; i < last; ++i) count(row[i], start, end);
    if (row[first].kind == OpKind::WeightGradient) {
      if (weights_began_[d] == kNever) weights_began_[d] = free_[d];
    } else {
      fills = fills || (weights_began_[d] != kNever && ready > weights_began_[d]);
      weights_began_[d] = kNever;
    }
    free_[d] = end;
    return last - first;
  }

  void count(const Op& op, int start, int end) {
    splits = splits || op.kind == OpKind::WeightGradient;
    const bool gradient = passes_gradient(op.kind);
    if (!gradient && op.kind != OpKind::Forward) return;
    end_[chains_.output(op.stage, op.micro, gradient)] = end;
    if (chains_.source(op.stage, gradient) < 0) return;
    ++transfers;
    exposed += arrival(op) == start ? 1 : 0;
  }

  const Schedule& schedule_;
  const Chains& chains_;
  std::vector<int> end_;  ///< [output]
  IdVector<DeviceId, std::size_t> head_;
  IdVector<DeviceId, int> free_;  ///< [rank]: end of its last op.
  IdVector<DeviceId, int>
      weights_began_;  ///< [rank]: when the run of W before its next op began; kNever when there is none.
};

/// Reports the first op whose column does not come after the column of its input, and how many such ops there are.
void check_columns(const CsvFile& csv, const Chains& chains, std::vector<ScheduleProblem>& problems) {
  std::vector<int> column(chains.outputs(), 0);
  const auto each = [&](auto&& visit) {
    for (int r = 0; r < std::ssize(csv.actions.ranks); ++r)
      for (std::size_t i = 0; i < csv.actions.ranks[r].size(); ++i)
        if (const Action& a = csv.actions.ranks[r][i]; a.makes_output())
          visit(a.op(), r, csv.columns[r][i], a.passes_gradient());
  };
  each([&](const Op& op, int, int at, bool gradient) { column[chains.output(op.stage, op.micro, gradient)] = at; });
  ScheduleProblem first{"timestep", 10, -1, -1, {}, {}};
  int count = 0;
  each([&](const Op& op, int rank, int at, bool gradient) {
    const int source = chains.source(op.stage, gradient);
    if (source < 0) return;
    const int produced_at = column[chains.input(op.stage, op.micro, gradient)];
    if (at > produced_at || count++ > 0) return;
    first.rank = rank, first.column = at, first.op = to_text(op);
    first.message = fmt::format("its input is made in column {} of rank {}", produced_at, source);
  });
  if (count == 0) return;
  first.message += fmt::format("; the timestep-locked runtime needs idle cells at {} such ops", count);
  problems.push_back(std::move(first));
}

/// Reports the first group of ops that is not what OVERLAP_F_B is for, and how many such groups there are.
void check_overlaps(const CsvFile& csv, std::vector<ScheduleProblem>& problems) {
  ScheduleProblem first{"overlap", 10, -1, -1, {}, {}};
  int count = 0;
  for (int r = 0; r < std::ssize(csv.actions.ranks); ++r) {
    const auto& row = csv.actions.ranks[r];
    bool inside = false, forward = false, gradient = false;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool opens = row[i].is_compute() && row[i].fused;
      forward = (inside && forward) || row[i].is_forward();
      gradient = (inside && gradient) || row[i].passes_gradient();
      if (inside && !opens && !(forward && gradient) && count++ == 0)
        first.rank = r, first.column = csv.columns[r][i], first.op = to_text(row[i]);
      inside = opens;
    }
  }
  if (count == 0) return;
  first.message = "OVERLAP_F_B is for a forward and a backward; PyTorch runs its ops here one after the other";
  if (count > 1) first.message += fmt::format("; and {} more like this", count - 1);
  problems.push_back(std::move(first));
}

}  // namespace

std::vector<ScheduleProblem> lint(const CsvFile& csv, const Plan& plan) {
  std::vector<ScheduleProblem> problems;
  const auto warn = [&](const char* code, std::string message) {
    problems.push_back({code, 10, -1, -1, {}, std::move(message)});
  };
  const Chains chains = chains_of(plan);
  const UnitTimes times(compute_of(csv.actions), plan, chains);
  if (times.splits) warn("split-backward", "I and W apart cannot be run on modules of torch.compile");
  if (times.splits && !times.fills)
    warn("idle-weight", "no W runs where its rank would wait, so B would do as well as I and W");
  check_overlaps(csv, problems);
  if (!csv.communicates) check_columns(csv, chains, problems);
  if (times.exposed > 0)
    warn("exposed", fmt::format("{} of {} transfers are hidden by nothing when all ops take equally long",
                                times.exposed, times.transfers));
  const auto gathers = [](const Action& a) { return a.kind == ActionKind::Unshard; };
  if (csv.communicates && std::none_of(csv.actions.ranks.begin(), csv.actions.ranks.end(),
                                       [&](const auto& row) { return std::any_of(row.begin(), row.end(), gathers); }))
    warn("unsharded", "without UNSHARD no stage can be under FSDP");
  return problems;
}

}  // namespace stagecraft
