// The first part of the search of `synthesised`: makes list schedules (list_scheduler.cpp) by many starting policies,
// and improves the best four policies by hill climbing.

#include <algorithm>
#include <cmath>

#include "sim/schedule/synthesis/candidate_pool.hpp"
#include "sim/schedule/synthesis/list_scheduler.hpp"

namespace stagecraft::synthesis {
namespace {

constexpr double kFar = 1e4;   // More than the number of micro-batches.
constexpr double kLast = 1e9;  // Runs only when nothing else is ready.
constexpr std::size_t kClimbers = 4;

/// The time between micro-batches that the busiest rank allows.
double pace_of(const SchedulingProblem& p) {
  double pace = 0;
  for (const auto& stages : p.stages) {
    double busy = 0;
    int max_micros = 1;
    for (const int s : stages) {
      busy += p.micros[s] * p.times[s].whole();
      max_micros = std::max(max_micros, p.micros[s]);
    }
    pace = std::max(pace, busy / max_micros);
  }
  return pace > 0 ? pace : 1;
}

/// When a micro-batch that is alone reaches the forward and the gradient of each stage. With `wait` it waits for that
/// many times the step at the first stage of every rank on its way forward, and at the last stage on its way back. Such
/// micro-batches are slow down the ranks and quick up the ranks, so a pattern of many has room for both directions.
struct LoneMicroBatch {
  std::vector<double> forward, gradient;
};
LoneMicroBatch lone_micro_batch(const SchedulingProblem& p, double wait) {
  LoneMicroBatch t{std::vector<double>(p.rank_of.size(), 0), std::vector<double>(p.rank_of.size(), 0)};
  const auto pass_on = [&](std::vector<double>& to, const std::vector<Output>& outputs, double end) {
    for (const Output& o : outputs) {
      double& start = to[p.stage_of[o.piece]];
      start = std::max(start, end + o.sending + o.delay);
    }
  };
  for (const int s : p.order) {
    const double time = p.times[s].forward;
    if (p.stages[p.rank_of[s]].front() == s) t.forward[s] += wait * time;
    t.gradient[s] = t.forward[s] + time;
    if (p.micros[s] > 0) pass_on(t.forward, p.forward_outputs[p.first_piece[s]], t.gradient[s]);
  }
  for (auto it = p.order.rbegin(); it != p.order.rend(); ++it) {
    const double time = p.times[*it].prelude + p.times[*it].input_gradient;
    if (p.stages[p.rank_of[*it]].back() == *it) t.gradient[*it] += wait * time;
    if (p.micros[*it] > 0) pass_on(t.gradient, p.gradient_outputs[p.first_piece[*it]], t.gradient[*it] + time);
  }
  return t;
}

enum class StartingRule { BackwardFirst, ForwardFirst, Pattern, SlowPattern, SlowerPattern };

/// `share` is the part of the micro-batches in flight in a full pipeline that a stage admits.
ListRules starting_rules(const SchedulingProblem& p, StartingRule rule, double share, double patience) {
  const double pace = pace_of(p);
  const auto stages = static_cast<double>(p.rank_of.size());
  const double wait = rule == StartingRule::SlowPattern ? 1 : rule == StartingRule::SlowerPattern ? 2 : 0;
  const LoneMicroBatch lone = lone_micro_batch(p, wait);
  ListRules g;
  g.patience = patience;
  for (std::size_t s = 0; s < p.rank_of.size(); ++s) {
    const double there = lone.forward[s] / pace, back = lone.gradient[s] / pace;
    const double under_way = std::ceil(share * (back - there + p.times[s].whole() / pace));
    const int ahead = static_cast<int>(std::clamp(under_way, 1.0, std::max(1.0, double(p.micros[s]))));
    const double depth = static_cast<double>(s) / stages;  // A tie goes to the later stage.
    const bool pattern = rule != StartingRule::BackwardFirst && rule != StartingRule::ForwardFirst;
    for (int m = 0; m < p.micros[s]; ++m) {
      g.ahead.push_back(ahead);
      g.forward.push_back(m + (pattern ? there : kFar * ((rule == StartingRule::ForwardFirst ? -3 : 0) - depth)));
      g.gradient.push_back(m + (pattern ? back : kFar * (depth - 2)));
      g.weight.push_back(m + (pattern ? back + 1 : kLast));
    }
  }
  return g;
}

/// A range of stages and a range of micro-batches of each.
struct Patch {
  int first_stage, end_stage, first_micro, end_micro;
};
Patch any_patch(const SchedulingProblem& p, Rng& rng) {
  const int stages = static_cast<int>(p.rank_of.size());
  const int micros = *std::max_element(p.micros.begin(), p.micros.end());
  const int s = rng.integer(0, stages - 1), end = rng.integer(0, 1) ? s + 1 : rng.integer(s + 1, stages);
  const int cut = rng.integer(1, micros);
  switch (rng.integer(0, 5)) {
    case 0:
      return {s, end, 0, cut};
    case 1:
      return {s, end, cut, micros};
    case 2:
      return {s, end, cut - 1, rng.integer(cut, micros)};
    default:
      return {s, end, 0, micros};
  }
}

/// Changes one rule of one or several stages for some or all micro-batches, or moves one admitted micro-batch from a
/// stage of a rank to another.
ListRules mutated(const SchedulingProblem& p, ListRules g, Rng& rng) {
  const Patch patch = any_patch(p, rng);
  const auto each = [&](int first, int end, auto&& change) {
    for (int s = first; s < end; ++s)
      for (int m = patch.first_micro; m < std::min(patch.end_micro, p.micros[s]); ++m)
        change(p.first_piece[s] + m, p.micros[s]);
  };
  const auto add = [&](int first, int end, int change) {
    each(first, end, [&](std::size_t i, int limit) { g.ahead[i] = std::clamp(g.ahead[i] + change, 1, limit); });
  };
  const int s = patch.first_stage;
  switch (rng.integer(0, 9)) {
    case 0:
    case 1:
    case 2:
      add(s, s + 1, rng.integer(0, 1) * 2 - 1);
      break;
    case 3:
    case 4: {
      const auto& others = p.stages[p.rank_of[s]];
      const int other = others[rng.integer(0, static_cast<int>(others.size()) - 1)];
      add(s, s + 1, -1);
      add(other, other + 1, 1);
      break;
    }
    case 5:
    case 6:
      add(s, patch.end_stage, rng.integer(0, 1) * 2 - 1);
      break;
    case 7:
      (rng.integer(0, 1) ? g.patience : g.courtesy) = rng.uniform(0, 1.2);
      break;
    default: {
      std::vector<double>* const lists[] = {&g.forward, &g.gradient, &g.weight};
      auto& keys = *lists[rng.integer(0, 2)];
      const double change = rng.integer(0, 7) == 0 ? rng.uniform(-kFar, kFar) : rng.uniform(-2, 2);
      each(s, patch.end_stage, [&](std::size_t i, int) { keys[i] += change; });
    }
  }
  return g;
}

}  // namespace

void improve_lists(CandidatePool& pool, Rng& rng, double effort) {
  const SchedulingProblem& p = pool.problem;
  struct Climber {
    ListRules rules;
    double cost;
  };
  const auto evaluated = [&](ListRules rules) {
    rules.whole = !pool.goal.split;
    const double cost = pool.add(list_schedule(p, pool.limit, rules));
    pool.spend(3 * 4 * p.pieces());  // Making a list schedule takes about as long as evaluating it a few times.
    return Climber{std::move(rules), cost};
  };
  std::vector<Climber> climbers;
  for (const StartingRule rule : {StartingRule::BackwardFirst, StartingRule::ForwardFirst, StartingRule::Pattern,
                                  StartingRule::SlowPattern, StartingRule::SlowerPattern})
    for (const double share : {1e9, 1.0, 1.3, 1.7, 0.7, 0.4})
      for (const double patience : {0.0, 0.5, 1.0})
        if (climbers.empty() || !pool.spent(effort))
          climbers.push_back(evaluated(starting_rules(p, rule, share, patience)));
  std::stable_sort(climbers.begin(), climbers.end(),
                   [](const Climber& a, const Climber& b) { return a.cost < b.cost; });
  climbers.resize(std::min(climbers.size(), kClimbers));
  for (std::size_t i = 0; !pool.spent(effort); i = (i + 1) % climbers.size()) {
    Climber next = evaluated(mutated(p, climbers[i].rules, rng));
    if (next.cost <= climbers[i].cost) climbers[i] = std::move(next);
  }
}

}  // namespace stagecraft::synthesis
