#include "sim/published/named_figures.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/experiment/metrics.hpp"
#include "sim/published/learning_figures.hpp"

namespace stagecraft {
namespace {

/// What the stage that takes longest, from its first start to its last end, idles of that time; updates left out. The
/// bubble rate of Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 5.3.
double span_bubble(const CompiledExperiment& p, const Outcome& o) {
  double longest = 0, bubble = 0;
  for (int d = 0; d < p.program.devices; ++d) {
    double first = kInfinity, last = 0, busy = 0;
    for (std::size_t n = 0; n < p.program.size(); ++n) {
      const Instruction& i = p.program.instructions[n];
      if (i.device != d || !i.is_compute() || i.kind == InstructionKind::Update) continue;
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

/// Of one micro-batch in the steady state.
double micro_batch_period(const CompiledExperiment& p, const Outcome& o) {
  return o.report.period.value / p.plan.micro_batches(StageId{0});
}

/// What a device idles of the first iteration, in the mean; updates count as work.
double idle(const CompiledExperiment&, const Outcome& o) { return o.report.makespan.value * o.report.bubble; }

constexpr NamedFigure kMore[] = {
    {"idle_s", false, idle},
    {"span_bubble", false, span_bubble},
    {"micro_batch_period_s", false, micro_batch_period},
    {"stable_rate", true, stable_rate},
    {"updates_to_half_loss", false, updates_to_half_loss},
    {"evaluated_loss", false, evaluated_loss},
    {"predicted_s", false, [](const CompiledExperiment& p, const Outcome&) { return p.report.predicted.value; }},
};

bool more_is_better(std::string_view figure) {
  return figure == "throughput_samples_per_s" || figure == "utilisation" || figure == "fits";
}

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
  const Metric& f = metrics()[metric(name)];
  return {f.name, more_is_better(name), f.of};
}

}  // namespace stagecraft
