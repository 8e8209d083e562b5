#include "sim/schedule/lint.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/schedule/chains.hpp"

namespace stagecraft {
namespace {

constexpr int kNever = -1;

/// When everything would run if every op took one unit and transfers nothing.
class UnitTimes {
 public:
  UnitTimes(const Schedule& schedule, const Plan& plan, const Chains& chains)
      : schedule_(schedule), chains_(chains), end_(chains.outputs(), kNever) {
    head_.assign(schedule.devices.size(), 0);
    free_.assign(schedule.devices.size(), 0);
    behind_weights_.assign(schedule.devices.size(), kNever);
    const GlobalOrder order = global_order(schedule, plan, 1);
    for (std::size_t i = 0; i < order.devices.size();) i += step(order.devices[i]);
  }

  int transfers = 0, exposed = 0;
  bool splits = false, fills = false;  ///< Some W; one that runs where its rank would wait.

 private:
  static bool is_gradient(const Op& op) { return passes_gradient(op.kind); }

  /// When the input of an op is there.
  int arrival(const Op& op) const {
    const bool gradient = is_gradient(op);
    if (!gradient && op.kind != OpKind::Forward) return 0;
    if (!(gradient ? chains_.feeds(op.stage) : chains_.is_fed(op.stage))) return 0;
    return end_[chains_.output(StageId{gradient ? op.stage + 1 : op.stage - 1}, op.micro, gradient)];
  }

  std::size_t step(DeviceId device) {
    const auto d = static_cast<std::size_t>(device);
    const auto& row = schedule_.devices[d];
    const std::size_t first = head_[d], last = group_end(row, first);
    head_[d] = last;
    int ready = 0;
    for (std::size_t i = first; i < last; ++i) ready = std::max(ready, arrival(row[i]));
    const int start = std::max(ready, free_[d]), end = start + static_cast<int>(last - first);
    for (std::size_t i = first; i < last; ++i) count(row[i], start, end);
    if (row[first].kind == OpKind::WeightGradient) {
      if (behind_weights_[d] == kNever) behind_weights_[d] = free_[d];
    } else {
      fills = fills || (behind_weights_[d] != kNever && ready > behind_weights_[d]);
      behind_weights_[d] = kNever;
    }
    free_[d] = end;
    return last - first;
  }

  void count(const Op& op, int start, int end) {
    splits = splits || op.kind == OpKind::WeightGradient;
    const bool gradient = is_gradient(op);
    if (!gradient && op.kind != OpKind::Forward) return;
    end_[chains_.output(op.stage, op.micro, gradient)] = end;
    if (chains_.source(op.stage, gradient) < 0) return;
    ++transfers;
    exposed += arrival(op) == start ? 1 : 0;
  }

  const Schedule& schedule_;
  const Chains& chains_;
  std::vector<int> end_;  ///< Of each output.
  std::vector<std::size_t> head_;
  std::vector<int> free_, behind_weights_;  ///< Of each rank; the second is where a run of W began.
};

/// The first op whose column is not behind that of its input, and how many there are.
void check_columns(const CsvFile& csv, const Chains& chains, std::vector<ScheduleProblem>& problems) {
  std::vector<int> column(chains.outputs(), 0);
  const auto each = [&](auto&& visit) {
    for (std::size_t r = 0; r < csv.actions.ranks.size(); ++r)
      for (std::size_t i = 0; i < csv.actions.ranks[r].size(); ++i) {
        const Op op = csv.actions.ranks[r][i].op();
        if (op.kind == OpKind::Forward || passes_gradient(op.kind))
          visit(op, static_cast<int>(r), csv.columns[r][i], passes_gradient(op.kind));
      }
  };
  each([&](const Op& op, int, int at, bool gradient) { column[chains.output(op.stage, op.micro, gradient)] = at; });
  ScheduleProblem first{"timestep", 10, -1, -1, {}, {}};
  int count = 0;
  each([&](const Op& op, int rank, int at, bool gradient) {
    const int source = chains.source(op.stage, gradient);
    if (source < 0) return;
    const StageId from{gradient ? op.stage + 1 : op.stage - 1};
    const int made = column[chains.output(from, op.micro, gradient)];
    if (at > made || count++ > 0) return;
    first.rank = rank, first.column = at, first.op = to_text(op);
    first.message = fmt::format("its input is made in column {} of rank {}", made, source);
  });
  if (count == 0) return;
  first.message += fmt::format("; the timestep-locked runtime needs idle cells at {} such ops", count);
  problems.push_back(std::move(first));
}

/// The first group of ops that is not what OVERLAP_F_B is for, and how many there are.
void check_overlaps(const CsvFile& csv, std::vector<ScheduleProblem>& problems) {
  ScheduleProblem first{"overlap", 10, -1, -1, {}, {}};
  int count = 0;
  for (std::size_t r = 0; r < csv.actions.ranks.size(); ++r) {
    const auto& row = csv.actions.ranks[r];
    bool inside = false, forward = false, gradient = false;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool opens = row[i].is_compute() && row[i].fused;
      forward = (inside && forward) || row[i].kind == ActionKind::Forward;
      gradient = (inside && gradient) || passes_gradient(row[i].op().kind);
      if (inside && !opens && !(forward && gradient) && count++ == 0)
        first.rank = static_cast<int>(r), first.column = csv.columns[r][i], first.op = to_text(row[i]);
      inside = opens;
    }
  }
  if (count == 0) return;
  first.message = "OVERLAP_F_B is for a forward and a backward, and PyTorch runs what it has one behind the other";
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
