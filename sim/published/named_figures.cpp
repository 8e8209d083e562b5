// The figures of a run that published numbers can be compared with: every metric of a run, and a few that only
// publications give, such as the bubble rate of Zero Bubble.

#include "sim/published/named_figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/output/convergence.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {
namespace {

/// w <- w - rate * w as it was `delay` updates ago; whether the last quarter is larger than the second one.
bool grows(int delay, double rate) {
  constexpr int kUpdates = 8000;
  std::vector<double> w(delay + 1, 1.0);
  double early = 0, late = 0;
  for (int update = 0; update < kUpdates; ++update) {
    const std::size_t now = w.size() - 1;
    w.push_back(w[now] - rate * w[now - delay]);
    const double square = w.back() * w.back();
    if (square > 1e100) return true;
    if (update >= kUpdates / 4 && update < kUpdates / 2) early += square;
    if (update >= 3 * kUpdates / 4) late += square;
  }
  return late > early;
}

}  // namespace

int delay_of_first_stage(const Program& program) {
  std::map<std::int32_t, std::int32_t> read;  // Micro-batch -> version.
  std::int32_t last = -1;
  int delay = -1;
  for (const Instruction& i : program.instructions) {
    if (i.stage != StageId{0} || !i.is_compute()) continue;
    if (i.kind == InstructionKind::Forward) read[i.micro_batch()] = i.version();
    if (i.kind == InstructionKind::Backward || i.kind == InstructionKind::WeightGradient) last = i.micro_batch();
    if (i.kind == InstructionKind::Update && last >= 0) delay = i.version() - 1 - read.at(last);
  }
  if (delay < 0) throw InputError("nothing is updated, so no gradient is late", "take a schedule that trains");
  return delay;
}

double stable_rate(const CompiledExperiment& p, const Outcome&) {
  const int delay = delay_of_first_stage(p.program);
  double stable = 0, unstable = 3;
  while (unstable - stable > 1e-6)
    (grows(delay, (stable + unstable) / 2) ? unstable : stable) = (stable + unstable) / 2;
  return stable;
}

double updates_to_half_loss(const CompiledExperiment&, const Outcome& o) {
  constexpr double kNever = std::numeric_limits<double>::quiet_NaN();
  if (!o.timeline.learnt || o.timeline.learnt->evaluations.empty()) return kNever;
  Curve curve;
  curve.evaluations = o.timeline.learnt->evaluations;
  const auto updates = updates_to(curve, curve.evaluations.front().loss / 2);
  return updates ? *updates : kNever;
}

double evaluated_loss(const CompiledExperiment&, const Outcome& o) {
  constexpr std::size_t kLast = 4;
  if (!o.timeline.learnt || o.timeline.learnt->diverged || o.timeline.learnt->evaluations.size() < kLast)
    return std::numeric_limits<double>::quiet_NaN();
  const auto& evaluations = o.timeline.learnt->evaluations;
  double sum = 0;
  for (auto e = evaluations.end() - kLast; e != evaluations.end(); ++e) sum += e->loss;
  return sum / kLast;
}

namespace {

/// Idle share of the device whose span, from its first start to its last end, is longest; updates do not count. This is
/// the bubble rate of Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 5.3.
double span_bubble(const CompiledExperiment& p, const Outcome& o) {
  double longest = 0, bubble = 0;
  for (int d = 0; d < p.program.devices; ++d) {
    double first = kInfinity, last = 0, busy = 0;
    for (const InstructionId n : p.program.instructions.ids()) {
      const Instruction& i = p.program.instructions[n];
      if (i.device.value != d || !i.is_compute() || i.kind == InstructionKind::Update) continue;
      first = std::min(first, o.timeline.start[n]);
      last = std::max(last, o.timeline.end[n]);
      busy += o.timeline.end[n] - o.timeline.start[n];
    }
    if (last - first <= longest) continue;
    longest = last - first;
    bubble = 1 - busy / longest;
  }
  return bubble;
}

/// Time per micro-batch in the steady state.
double micro_batch_period(const CompiledExperiment& p, const Outcome& o) {
  return o.report.period.value / p.plan.micro_batches(StageId{0});
}

/// Mean idle time of a device in the first iteration; updates count as work.
double idle(const CompiledExperiment&, const Outcome& o) {
  Seconds idle;
  double used = 0;
  for (const DeviceReport& d : o.report.devices)
    if (d.used) idle += o.report.makespan - d.busy, used += 1;
  return idle.value / used;
}

const NamedFigure kMore[] = {
    {"idle_s", false, idle},
    {"span_bubble", false, span_bubble},
    {"micro_batch_period_s", false, micro_batch_period},
    {"stable_rate", true, stable_rate},
    {"updates_to_half_loss", false, updates_to_half_loss},
    {"evaluated_loss", false, evaluated_loss},
    {"predicted_s", false, [](const CompiledExperiment& p, const Outcome&) { return p.report.predicted.value; }},
};

}  // namespace

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const Metric& f : metrics()) names.emplace_back(f.name);
  for (const NamedFigure& q : kMore) names.emplace_back(q.name);
  return names;
}

NamedFigure named_figure(std::string_view name) {
  for (const NamedFigure& q : kMore)
    if (q.name == name) return q;
  const Metric* m = &metrics()[metric(name)];
  return {m->name, m->better == Better::More,
          [m](const CompiledExperiment& c, const Outcome& o) { return m->value_of(view_of(c, o)); }};
}

}  // namespace stagecraft
