#pragma once

#include "backends/cpu/kernels.hpp"
#include "backends/real/execute.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::test {

/// A schedule of the catalog, lowered under a weights rule and really run.
struct RealRun {
  Program program;
  Timeline timeline;
  const Learnt& learnt() const { return *timeline.learnt; }
};

inline Program real_program(std::string_view schedule, const Plan& by_hand, const WeightsRule& rule, int iterations,
                            const config::Value* options = nullptr, LoweringOptions lowering = {}) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", schedule);
  const Plan plan = reduced(by_hand);
  const StageCosts costs = uniform_costs(plan, times(1e-4, 2e-4));
  const Schedule order = build_schedule(
      def, {.plan = plan, .costs = costs, .iterations = iterations, .options = read_options(def, options)});
  lowering.iterations = iterations;
  Program program = lower(order, plan, costs, rule, lowering);
  check_program(program);
  return program;
}

inline Program with_workload(Program program, const ModelGraph& model, const Plan& plan, const WeightsRule& rule,
                             const Training& training) {
  program.workload = std::make_shared<const Workload>(make_workload(model, plan, rule, training));
  return program;
}

inline RealRun really_run(Program program, const ModelGraph& model, const Plan& plan, const WeightsRule& rule,
                          const Training& training, bool one_thread = false) {
  RealRun run{with_workload(std::move(program), model, plan, rule, training), {}};
  real::ExecutorOptions options;
  options.one_thread = one_thread;
  run.timeline = real::execute(run.program, cpu::make_kernels, options);
  return run;
}

}  // namespace stagecraft::test
