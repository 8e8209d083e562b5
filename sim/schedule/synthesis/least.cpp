#include "sim/schedule/synthesis/least.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stagecraft::synthesis {
namespace {

std::vector<Link> links_of(const Problem& p, int stage, const std::vector<std::vector<Output>>& outputs) {
  std::vector<Link> links;
  if (p.micros[stage] == 0) return links;
  for (const Output& o : outputs[p.first_piece[stage]])
    links.push_back({p.stage_of[o.piece], o.exact ? o.sending + o.delay : 0});
  return links;
}

double time_to(const std::vector<Link>& links, int stage) {
  for (const Link& l : links)
    if (l.stage == stage) return l.time;
  return 0;
}

constexpr int kAny = std::numeric_limits<int>::max() / 4;

/// How many of this size fit.
int fit(double most, double each) {
  constexpr double kSame = 1e-6;
  if (!(each > 0) || !(most / each < kAny)) return kAny;
  return std::max(0, static_cast<int>(std::floor(most / each + kSame)));
}

}  // namespace

Least::Least(const Problem& p, const Limit& limit, bool split)
    : problem(p), times(p.least), waits(p.rank_of.size()), waited(p.rank_of.size()) {
  trip.assign(times.size(), 0);
  for (int s = 0; s < static_cast<int>(times.size()); ++s) {
    StageTimes& t = times[s];
    // B may take less than I and W together, so whichever is shorter counts, and B alone where nothing is split.
    if (!split) t.input_gradient = t.backward, t.weight_gradient = 0;
    gradients.push_back(std::min(t.input_gradient + t.weight_gradient, t.backward));
    weight.push_back(gradients.back() - std::min(t.input_gradient, t.backward));
    before.push_back(links_of(p, s, p.gradient_outputs));
    behind.push_back(links_of(p, s, p.forward_outputs));
    most_micros = std::max(most_micros, p.micros[s]);
  }
  find_ahead();
  for (const Resource& r : limit) measure_room(r);
  for (auto it = p.order.rbegin(); it != p.order.rend(); ++it) {
    const StageTimes& t = times[*it];
    double away = t.prelude;
    for (const Link& l : behind[*it]) away = std::max(away, l.time + trip[l.stage] + time_to(before[l.stage], *it));
    trip[*it] = t.forward + away + input(*it);
  }
}

void Least::find_ahead() {
  constexpr double kMostLooks = 2e7;
  const Problem& p = problem;
  const bool all = static_cast<double>(times.size()) * static_cast<double>(times.size()) <= kMostLooks;
  for (int s = 0; s < static_cast<int>(times.size()); ++s) {
    auto& found = ahead_.emplace_back(1, s);
    if (!all || p.stages[p.rank_of[s]].size() == 1) continue;
    std::vector<int> way{s};
    std::vector<bool> seen(times.size());
    for (std::size_t next = 0; next < way.size(); ++next)
      for (const Link& l : before[way[next]]) {
        if (seen[l.stage] || p.micros[l.stage] != p.micros[s]) continue;
        seen[l.stage] = true;
        way.push_back(l.stage);
        if (p.rank_of[l.stage] == p.rank_of[s]) found.push_back(l.stage);
      }
  }
}

void Least::add_wait(int stage, const Wait& w) {
  if (w.most >= problem.micros[stage]) return;
  waits[stage].push_back(w);
  waited[w.stage].push_back({stage, w.kind, w.most});
}

/// From F to I a micro-batch takes the boundary of its stage and of those of the rank on the way to it, from I to W at
/// least what I leaves. So, of a stage a on the way to b, beside the one that runs F of b:
/// n behind F and not behind I of a take n * taken[a]; n behind F and not behind W of a take n * kept[a]; n that wait
/// between both F when the next one comes to b are n-1 beside it, whatever comes until then.
void Least::measure_room(const Resource& r) {
  std::vector<double> taken(times.size(), 0), kept;
  for (std::size_t s = 0; s < times.size(); ++s) {
    for (const int other : ahead_[s]) taken[s] += r.boundary[other];
    kept.push_back(std::min(r.boundary[s], r.stash[s] * (1 - r.freed_at_input)));
  }
  for (int b = 0; b < static_cast<int>(times.size()); ++b) {
    const double rest = r.most[problem.rank_of[b]] - taken[b];
    for (const int a : ahead_[b]) {
      add_wait(b, {a, kInputGradient, 1 + fit(rest, taken[a])});
      add_wait(b, {a, kWeightGradient, 1 + fit(rest, kept[a])});
      if (a == b) continue;
      const int turning = 1 + fit(rest, taken[a]);
      add_wait(a, {b, kForward, turning});
      const double beside = r.most[problem.rank_of[b]] - taken[a];
      add_wait(a, {b, kWeightGradient, turning + fit(beside, kept[b])});
    }
  }
}

}  // namespace stagecraft::synthesis
