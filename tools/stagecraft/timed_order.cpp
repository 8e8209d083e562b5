// Times an order of work without a scenario: equal stages, a delay for each message, the backend `ideal`; `schedule`
// and `serve` call it.

#include "tools/stagecraft/asked_order.hpp"

#include "backends/backend.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/program/check.hpp"
#include "sim/program/lower.hpp"
#include "sim/result/pipeline_ranks.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule_file/checks.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

Program program_of(const AskedOrder& q, const StageCost& cost) {
  const LoweringOptions options{.overlap = true,
                                .rendezvous = false,
                                .streams = StreamModel::None,
                                .fifo_sends = false,
                                .iterations = kTimedIterations};
  throw_if_any(
      validate(q.all_iterations, q.plan, {.iterations = kTimedIterations, .trains = q.trains, .max_problems = 20}),
      q.name);
  Program program = lower(q.all_iterations, q.plan, uniform_costs(q.plan, cost),
                          get_from(weights::catalog(), "weights policy", q.weights).paper, options);
  check_program(program);
  return program;
}

/// The peaks follow from the order alone, because times may be zero.
std::vector<double> peaks_of(const AskedOrder& q, double freed_at_input) {
  Plan plan = q.plan;
  plan.mini_batch *= kTimedIterations;
  const StashModel model{.each_stash = q.trains ? 1.0 : 0.0, .freed_at_input = freed_at_input};
  std::vector<double> peaks;
  for (const StashPeak& peak : stash_peaks(actions_of(q.all_iterations), plan, model)) peaks.push_back(peak.size);
  return peaks;
}

}  // namespace

TimedOrder time_order(const AskedOrder& q, const StageCost& cost, Seconds delay, double freed_at_input) {
  TimedOrder timed;
  timed.program = program_of(q, cost);
  timed.cluster = delay_cluster(delay, timed.program.devices);
  timed.timeline = get_from(backends::catalog(), "backend", "ideal").run(timed.program, timed.cluster, {});
  timed.report = measure(timed.program, timed.timeline, timed.cluster);
  timed.report.ranks = pipeline_ranks(q.plan, timed.program, timed.report, timed.cluster);
  check_finite(timed.report.makespan.value);
  timed.peaks = peaks_of(q, freed_at_input);
  return timed;
}

}  // namespace stagecraft
