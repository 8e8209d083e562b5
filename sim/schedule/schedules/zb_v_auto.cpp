// The schedule `zb-v-auto`: zero bubble in a V, with an order found from the costs.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/schedule/greedy_rows.hpp"

#include "sim/core/stop_point.hpp"

// A micro-batch takes four legs: forward down the ranks (chunk 0), forward up (chunk 1), its gradient down (chunk 1),
// up (chunk 0). In turn one gradient and one forward on each rank, with weight gradients where they fill a gap or free
// memory. O(ops).

namespace stagecraft::schedules {
namespace {

const config::MapSpec zb_v_auto_fields{.title = "Zero bubble from the costs, in a V.", .fields = {memory_field("1")}};

struct ZbVAutoMemoryOption {
  double memory = 1;
  friend bool operator==(const ZbVAutoMemoryOption&, const ZbVAutoMemoryOption&) = default;
};

void read_zb_v_auto(const config::Value& map, ScheduleOptions& options) {
  options.keep(ZbVAutoMemoryOption{option_or(map, "memory", 1.0)});
}

enum { ForwardDown, ForwardUp, GradientDown, GradientUp };
constexpr Leg kZbVAutoLegs[] = {{OpKind::Forward, 0, true},
                                {OpKind::Forward, 1, false},
                                {OpKind::InputGradient, 1, true},
                                {OpKind::InputGradient, 0, false}};

/// One schedule. With the bubbles of an earlier trial, a rank may idle for as long as its own bubble was shorter than
/// the worst, before weight gradients are put into its gaps.
class ZbVTrial {
 public:
  ZbVTrial(const ZeroBubbleWork& work, bool fill_forward, bool fill_gradient,
           const std::vector<double>* earlier_bubbles)
      : work_(work),
        fill_forward_(fill_forward),
        fill_gradient_(fill_gradient),
        rows_(work, kZbVAutoLegs),
        allowance_(work.costs.size(), 0) {
    if (!earlier_bubbles) return;
    const double worst = *std::max_element(earlier_bubbles->begin(), earlier_bubbles->end());
    for (int r = 0; r <= last(); ++r) allowance_[r] = worst - (*earlier_bubbles)[r];
  }

  /// False when there is too little memory.
  bool run() {
    warm_up();
    for (int round = 0; round < 2 * work_.micro_batches && !failed_; ++round) {
      stop_point();
      for (int r = 0; r <= last(); ++r) make_room(r, -1);
      gradients();
      forwards();
    }
    rows_.put_all_weights();
    return !failed_;
  }

  double bubble() const { return rows_.worst_bubble(); }
  std::vector<double> bubbles() const {
    std::vector<double> bubbles;
    for (int r = 0; r <= last(); ++r) bubbles.push_back(rows_.bubble(r));
    return bubbles;
  }
  const GreedyRows& rows() const { return rows_; }

 private:
  int last() const { return rows_.last_rank(); }

  void put(int r, int leg) {
    const int micro = rows_.count(r, leg);
    if (!rows_.has_more(r, leg) || !rows_.has_input(r, leg) || (leg > 0 && rows_.end_of(r, leg - 1, micro) < 0) ||
        rows_.memory(r) + rows_.memory_change(r, leg) > work_.limit) {
      failed_ = true;
      return;
    }
    rows_.put(r, leg);
  }

  void make_room(int r, double change) { failed_ |= !rows_.make_room(r, change); }

  /// Weight gradients that end before the input arrives, and one more where the gap would make this rank the worst.
  void fill(int r, int leg, bool also_worst) {
    rows_.fill_gap(r, leg);
    if (also_worst && !rows_.due_weights(r).empty() &&
        rows_.gap(r, leg) > std::max(rows_.worst_bubble(), allowance_[r]) - rows_.bubble(r))
      rows_.put_weight(r);
  }

  void warm_up() {
    for (int r = 0; r <= last(); ++r) put(r, ForwardDown);
    for (int r = last(); r >= 0 && !failed_; --r) {
      if (r < last()) {
        const double back = rows_.end_of(r + 1, ForwardUp, 0) + work_.hop;
        while (!failed_ && rows_.memory(r) + work_.costs[r][0].memory * 2 * (2 + 2 * r) <= work_.limit &&
               rows_.end(r) + rows_.time_of(r, ForwardDown) <= back && rows_.has_more(r, ForwardDown))
          for (int j = 0; j <= r; ++j) put(j, ForwardDown);
      }
      put(r, ForwardUp);
    }
    int leg = ForwardDown;
    for (int r = 1; r <= last() && !failed_; ++r)
      while (!failed_ && lags(r)) {
        for (int j = last(); j >= r; --j)
          if (rows_.has_more(j, leg)) put(j, leg);
        leg = ForwardUp - leg;
      }
  }

  /// Whether a rank has fewer forwards than the one before it.
  bool lags(int r) const {
    const int down = rows_.count(r, ForwardDown), up = rows_.count(r, ForwardUp);
    const int down_before = rows_.count(r - 1, ForwardDown), up_before = rows_.count(r - 1, ForwardUp);
    return down + up < down_before + up_before || (up <= up_before && up_before < work_.micro_batches);
  }

  void gradients() {
    std::vector<std::pair<int, int>> turns;  // Rank and leg: first the gradients that go up, from the last rank on.
    std::vector<int> down;
    for (int r = last(); r >= 0; --r) {
      const bool has = rows_.count(r, GradientUp) < rows_.count(r, GradientDown);
      if (has && (rows_.has_input(r, GradientUp) || !rows_.has_more(r, GradientDown)))
        turns.emplace_back(r, GradientUp);
      else
        down.push_back(r);
    }
    for (auto r = down.rbegin(); r != down.rend(); ++r) turns.emplace_back(*r, GradientDown);
    for (const auto& [r, leg] : turns) {
      if (failed_ || !rows_.has_more(r, leg)) {
        failed_ = true;
        return;
      }
      fill(r, leg, leg == GradientUp || fill_gradient_);
      put(r, leg);
    }
  }

  void forwards() {
    for (int r = 0; r <= last() && !failed_; ++r) {
      if (!rows_.has_more(r, ForwardUp)) continue;
      int leg = -1;
      if (rows_.count(r, ForwardUp) >= rows_.count(r, ForwardDown))
        leg = ForwardDown;
      else if (rows_.has_input(r, ForwardUp))
        leg = ForwardUp;
      else if (rows_.has_more(r, ForwardDown) && rows_.has_input(r, ForwardDown))
        leg = ForwardDown;
      if (leg < 0) continue;
      make_room(r, rows_.memory_change(r, leg));
      if (failed_) return;
      fill(r, leg, fill_forward_);
      put(r, leg);
    }
  }

  const ZeroBubbleWork& work_;
  bool fill_forward_, fill_gradient_, failed_ = false;
  GreedyRows rows_;
  std::vector<double> allowance_;  ///< [rank]
};

/// Tries again with the bubbles of the last schedule while that helps.
std::optional<ZbVTrial> improved(const ZeroBubbleWork& work, bool fill_forward, bool fill_gradient) {
  std::optional<ZbVTrial> best;
  std::vector<double> earlier_bubbles;
  for (;;) {
    ZbVTrial trial(work, fill_forward, fill_gradient, best ? &earlier_bubbles : nullptr);
    if (!trial.run() || (best && trial.bubble() >= best->bubble())) return best;
    earlier_bubbles = trial.bubbles();
    best.emplace(std::move(trial));
  }
}

Schedule zb_v_auto_whole(const ScheduleInput& in) {
  const double memory = in.options.as<ZbVAutoMemoryOption>().memory;
  // In halves of a stash: two for each of two chunks.
  const ZeroBubbleWork work(rank_costs(in), in.plan.micro_batches(StageId{0}), memory * 4 * in.layout.ranks());
  std::optional<ZbVTrial> best;
  for (const bool gradient : {true, false})
    for (const bool forward : {true, false})
      if (auto trial = improved(work, forward, gradient); trial && (!best || trial->bubble() < best->bubble()))
        best.emplace(std::move(*trial));
  if (!best)
    throw Infeasible("memory",
                     fmt::format("the schedule 'zb-v-auto' finds no order in {:g} times {} activations on each rank",
                                 memory, in.layout.ranks()),
                     "a larger run.schedule.memory, or the schedule zb-v");
  return schedule_of(in, best->rows());
}

}  // namespace

extern const ScheduleDef zb_v_auto{
    .name = "zb-v-auto",
    .summary = "zb-v with an order found from the costs",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 6; sail-sg, zbv.py",
    .placement = Placement::V,
    .chunks = {2, 2},
    .fields = &zb_v_auto_fields,
    .read = read_zb_v_auto,
    .whole = zb_v_auto_whole,
};

}  // namespace stagecraft::schedules
