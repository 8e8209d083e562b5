// What holds for every order of a plan, for the lower bounds of `synthesised`: least times of stages, messages and
// round trips, and which forwards wait because memory is full.

#include "sim/schedule/synthesis/bound_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stagecraft::synthesis {
namespace {

std::vector<StageLink> links_of(const SchedulingProblem& p, int stage,
                                const std::vector<std::vector<Output>>& outputs) {
  std::vector<StageLink> links;
  if (p.micros[stage] == 0) return links;
  for (const Output& o : outputs[p.first_piece[stage]])
    links.push_back({p.stage_of[o.piece], o.exact ? o.sending + o.delay : 0});
  return links;
}

double time_to(const std::vector<StageLink>& links, int stage) {
  for (const StageLink& l : links)
    if (l.stage == stage) return l.time;
  return 0;
}

constexpr int kAny = std::numeric_limits<int>::max() / 4;

/// How many of this size fit.
int fit(double capacity, double each) {
  constexpr double kSame = 1e-6;
  if (!(each > 0) || !(capacity / each < kAny)) return kAny;
  return std::max(0, static_cast<int>(std::floor(capacity / each + kSame)));
}

}  // namespace

LowerBoundModel::LowerBoundModel(const SchedulingProblem& p, const ResourceLimits& limit, bool split)
    : problem(p), times(p.min_times), constraints(p.rank_of.size()), constrains(p.rank_of.size()) {
  trip.assign(times.size(), 0);
  for (int s = 0; s < static_cast<int>(times.size()); ++s) {
    StageTimes& t = times[s];
    // B may take less than I and W together, so the shorter counts; B alone when nothing may be split.
    if (!split) t.input_gradient = t.backward, t.weight_gradient = 0;
    gradients.push_back(std::min(t.input_gradient + t.weight_gradient, t.backward));
    weight.push_back(gradients.back() - std::min(t.input_gradient, t.backward));
    before.push_back(links_of(p, s, p.gradient_outputs));
    after.push_back(links_of(p, s, p.forward_outputs));
    most_micros = std::max(most_micros, p.micros[s]);
  }
  find_ahead();
  for (const Resource& r : limit) measure_room(r);
  for (auto it = p.order.rbegin(); it != p.order.rend(); ++it) {
    const StageTimes& t = times[*it];
    double away = t.prelude;
    for (const StageLink& l : after[*it]) away = std::max(away, l.time + trip[l.stage] + time_to(before[l.stage], *it));
    trip[*it] = t.forward + away + input(*it);
  }
}

void LowerBoundModel::find_ahead() {
  constexpr double kMostLooks = 2e7;
  const SchedulingProblem& p = problem;
  const bool is_small = static_cast<double>(times.size()) * static_cast<double>(times.size()) <= kMostLooks;
  for (int s = 0; s < static_cast<int>(times.size()); ++s) {
    auto& ahead = ahead_.emplace_back(1, s);
    if (!is_small || p.stages[p.rank_of[s]].size() == 1) continue;
    std::vector<int> path{s};
    std::vector<bool> seen(times.size());
    for (std::size_t next = 0; next < path.size(); ++next)
      for (const StageLink& l : before[path[next]]) {
        if (seen[l.stage] || p.micros[l.stage] != p.micros[s]) continue;
        seen[l.stage] = true;
        path.push_back(l.stage);
        if (p.rank_of[l.stage] == p.rank_of[s]) ahead.push_back(l.stage);
      }
  }
}

void LowerBoundModel::add_constraint(int stage, const CapacityConstraint& c) {
  if (c.limit >= problem.micros[stage]) return;
  constraints[stage].push_back(c);
  constrains[c.stage].push_back({stage, c.kind, c.limit});
}

/// From F to I a micro-batch holds the boundary of its stage and of the stages of the rank on the way to it, from I to
/// W at least what I leaves. So, for a stage a on the way to b, next to the micro-batch that runs F of b: n
/// micro-batches after F and before the end of I of a hold n * taken[a]; n after F and before the end of W of a hold n
/// * left[a]; if n wait between both F when the next one comes to b, n-1 wait next to it.
void LowerBoundModel::measure_room(const Resource& r) {
  std::vector<double> taken(times.size(), 0), left;
  for (std::size_t s = 0; s < times.size(); ++s) {
    for (const int other : ahead_[s]) taken[s] += r.boundary[other];
    left.push_back(std::min(r.boundary[s], r.stash[s] * (1 - r.freed_at_input)));
  }
  for (int b = 0; b < static_cast<int>(times.size()); ++b) {
    const double rest = r.capacity[problem.rank_of[b]] - taken[b];
    for (const int a : ahead_[b]) {
      add_constraint(b, {a, kInputGradient, 1 + fit(rest, taken[a])});
      add_constraint(b, {a, kWeightGradient, 1 + fit(rest, left[a])});
      if (a == b) continue;
      const int turning = 1 + fit(rest, taken[a]);
      add_constraint(a, {b, kForward, turning});
      const double rest_of_a = r.capacity[problem.rank_of[b]] - taken[a];
      add_constraint(a, {b, kWeightGradient, turning + fit(rest_of_a, left[b])});
    }
  }
}

}  // namespace stagecraft::synthesis
