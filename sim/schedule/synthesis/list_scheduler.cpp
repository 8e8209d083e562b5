// Makes an order by list scheduling, for improve_lists.cpp: each free rank runs the ready step with the least key, and
// a forward only if the rank's memory still lets its micro-batches finish.

#include "sim/schedule/synthesis/list_scheduler.hpp"

#include <algorithm>

#include "sim/core/numbers.hpp"
#include "sim/schedule/rank_clock.hpp"

namespace stagecraft::synthesis {
namespace {

class ListScheduler {
 public:
  ListScheduler(const SchedulingProblem& problem, const ResourceLimits& limit, const ListRules& rules)
      : problem_(problem),
        limit_(limit),
        rules_(rules),
        rows_(problem.stages.size()),
        missing_(problem.inputs),
        ready_(problem.inputs.size(), 0),
        stages_(problem.rank_of.size()),
        card_(problem.stages.size(), 0),
        held_(limit.size(), std::vector<double>(problem.stages.size(), 0)),
        clock_(problem.stages.size()) {}

  Rows run() {
    for (int r = 0; r < problem_.ranks(); ++r) clock_.wake(r, 0);
    clock_.run([&](int rank, double now) { decide(rank, now); });
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if (stages_[s].weight < problem_.micros[s]) return {};
    return std::move(rows_);
  }

 private:
  struct Progress {
    int forward = 0, gradient = 0, weight = 0;
  };
  struct Choice {
    int stage = -1;
    Kind kind = kForward;
    double key = 0;
  };

  int piece(int stage, int micro) const { return problem_.first_piece[stage] + micro; }

  /// When the next forward or gradient of a stage can start; infinity while that is not known.
  double start_of(int stage, bool forward) const {
    const Progress& p = stages_[stage];
    const int micro = forward ? p.forward : p.gradient;
    if (micro == problem_.micros[stage]) return kInfinity;
    if (forward ? p.forward - p.weight >= rules_.ahead[piece(stage, micro)] || !has_room(stage)
                : p.gradient >= p.forward || !has_room_back(stage))
      return kInfinity;
    const int slot = 2 * piece(stage, micro) + !forward;
    return missing_[slot] > 0 ? kInfinity : ready_[slot];
  }

  bool has_room(int stage) const {
    for (std::size_t k = 0; k < limit_.size(); ++k)
      if (!is_safe(limit_[k], held_[k][problem_.rank_of[stage]], stage)) return false;
    return true;
  }

  /// Whether the rank can finish its micro-batches one after the other, oldest first, when this forward comes next:
  /// each finds room for the stages that it has yet to pass, next to the largest recomputation, and gives back what it
  /// holds.
  bool is_safe(const Resource& r, double in_use, int stage) const {
    const int rank = problem_.rank_of[stage], current = stages_[stage].forward;
    double widest = 0, total = 0;
    int oldest = current, newest = current;
    for (const int s : problem_.stages[rank]) {
      widest = std::max(widest, r.stash[s] - r.boundary[s]);
      total += r.boundary[s];
      oldest = std::min(oldest, stages_[s].weight);
      newest = std::max(newest, stages_[s].forward - 1);
    }
    double free = r.capacity[rank] * (1 + 1e-12) - in_use - r.boundary[stage] - widest;
    for (int micro = oldest; micro <= newest && free < total; ++micro) {
      double needed = 0, holds = 0;
      for (const int s : problem_.stages[rank]) {
        const Progress& p = stages_[s];
        if (micro < p.weight || micro >= problem_.micros[s]) continue;
        if (micro < p.gradient)
          holds += r.stash[s] * (1 - r.freed_at_input);
        else if (micro < p.forward || (s == stage && micro == current))
          holds += r.boundary[s];
        else
          needed += r.boundary[s];
      }
      if (needed > free) return false;
      free += holds;
    }
    return free >= 0;
  }

  /// A recomputation may have to wait for a weight gradient to give back what the one before it took.
  bool has_room_back(int stage) const {
    const int rank = problem_.rank_of[stage];
    for (std::size_t k = 0; k < limit_.size(); ++k)
      if (held_[k][rank] + limit_[k].stash[stage] - limit_[k].boundary[stage] > limit_[k].capacity[rank] * (1 + 1e-12))
        return false;
    return true;
  }

  void decide(int rank, double now) {
    Choice best, coming;
    coming.key = kInfinity;
    double next = kInfinity, comes = kInfinity;
    int weight = -1;
    for (const int s : problem_.stages[rank]) {
      const auto consider = [&](bool forward, Kind kind, const std::vector<double>& keys, int micro) {
        const double start = start_of(s, forward);
        if (start == kInfinity) return;
        const double key = keys[piece(s, micro)];
        if (start <= now && (best.stage < 0 || key < best.key)) best = {s, kind, key};
        if (start <= now) return;
        next = std::min(next, start);
        if (key < coming.key) coming = {s, kind, key}, comes = start;
      };
      const Progress& p = stages_[s];
      consider(true, kForward, rules_.forward, p.forward);
      consider(false, rules_.whole ? kBackward : kInputGradient, rules_.gradient, p.gradient);
      if (p.weight == p.gradient) continue;
      if (weight < 0 || tighter(s, weight)) weight = s;
      const double key = rules_.weight[piece(s, p.weight)];
      if (best.stage >= 0 && key < best.key) best = {s, kWeightGradient, key};
    }
    if (best.stage < 0 && weight >= 0 && next - now >= rules_.patience * problem_.times[weight].weight_gradient)
      best = {weight, kWeightGradient, 0};
    if (best.stage >= 0 && coming.key < best.key &&
        comes - now < rules_.courtesy * problem_.times[best.stage].time_of(best.kind))
      best.stage = -1, next = comes;
    if (best.stage >= 0) return start(rank, now, best);
    if (next < kInfinity) clock_.wake(rank, next);
  }

  /// Whether fewer micro-batches can start before stage a is full than before stage b is.
  bool tighter(int a, int b) const {
    const auto room = [&](int s) {
      const Progress& p = stages_[s];
      return rules_.ahead[piece(s, std::min(p.forward, problem_.micros[s] - 1))] - (p.forward - p.weight);
    };
    return room(a) < room(b);
  }

  void start(int rank, double now, const Choice& c) {
    Progress& p = stages_[c.stage];
    const StageTimes& times = problem_.times[c.stage];
    const int micro = c.kind == kForward ? p.forward++ : c.kind == kWeightGradient ? p.weight++ : p.gradient++;
    if (c.kind == kBackward) p.weight = p.gradient;
    const Step step(c.kind, piece(c.stage, micro));
    rows_[rank].push_back(step);
    for (std::size_t k = 0; k < limit_.size(); ++k)
      held_[k][rank] += limit_[k].taken_by(step, c.stage) - limit_[k].given_by(step, c.stage);
    double end = now + times.time_of(c.kind);
    if (step.passes_gradient()) end += times.prelude;
    clock_.occupy(rank, end);
    if (c.kind == kForward) send(problem_.forward_outputs[step.piece()], 0, rank, end);
    if (step.passes_gradient()) send(problem_.gradient_outputs[step.piece()], 1, rank, end);
  }

  void send(const std::vector<Output>& outputs, int kind, int rank, double end) {
    for (const Output& output : outputs) {
      const auto slot = (2 * output.piece + kind);
      double there = end;
      if (output.sending > 0) there = card_[rank] = std::max(end, card_[rank]) + output.sending;
      ready_[slot] = std::max(ready_[slot], there + output.delay);
      if (--missing_[slot] > 0) continue;
      clock_.wake(problem_.rank_of[problem_.stage_of[output.piece]], ready_[slot]);
    }
  }

  const SchedulingProblem& problem_;
  const ResourceLimits& limit_;
  const ListRules& rules_;
  Rows rows_;
  std::vector<int> missing_;
  std::vector<double> ready_;
  std::vector<Progress> stages_;
  std::vector<double> card_;
  std::vector<std::vector<double>> held_;  ///< [resource][rank]
  RankClock<double> clock_;
};

}  // namespace

Rows list_schedule(const SchedulingProblem& problem, const ResourceLimits& limit, const ListRules& rules) {
  return ListScheduler(problem, limit, rules).run();
}

}  // namespace stagecraft::synthesis
