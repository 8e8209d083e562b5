#include "sim/published/learning_figures.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/report/convergence.hpp"

namespace stagecraft {
namespace {

/// w <- w - rate * w as it was `delay` updates ago; whether the last quarter is larger than the second one.
bool grows(int delay, double rate) {
  constexpr int kUpdates = 8000;
  std::vector<double> w(static_cast<std::size_t>(delay) + 1, 1.0);
  double early = 0, late = 0;
  for (int update = 0; update < kUpdates; ++update) {
    const std::size_t now = w.size() - 1;
    w.push_back(w[now] - rate * w[now - static_cast<std::size_t>(delay)]);
    const double square = w.back() * w.back();
    if (square > 1e100) return true;
    if (update >= kUpdates / 4 && update < kUpdates / 2) early += square;
    if (update >= 3 * kUpdates / 4) late += square;
  }
  return late > early;
}

}  // namespace

int delay_of_first_stage(const Program& program) {
  std::map<std::int32_t, std::int32_t> read;  // By micro-batch.
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
  const auto& all = o.timeline.learnt->evaluations;
  double sum = 0;
  for (auto e = all.end() - kLast; e != all.end(); ++e) sum += e->loss;
  return sum / kLast;
}

}  // namespace stagecraft
