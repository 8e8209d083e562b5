#pragma once

#include <string>
#include <string_view>

#include "sim/program/check.hpp"
#include "sim/program/lower.hpp"
#include "sim/schedule/validate.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/schedules.hpp"
#include "tests/support/weights.hpp"

namespace stagecraft::test {

/// Transfers without any order, and eager: what is left is the order of work and pure delays.
inline LoweringOptions pure_delays(int iterations = 1) {
  LoweringOptions options;
  options.rendezvous = options.fifo_sends = false;
  options.streams = StreamModel::None;
  options.iterations = iterations;
  return options;
}

/// Every rank reaches every other after `delay` seconds, whatever it sends.
inline Cluster delay_cluster(int ranks, double delay) { return star(ranks, 1e30, delay / 2, Duplex::Unshared); }

/// A schedule by hand, checked and lowered.
inline Program lowered(const Schedule& schedule, const Plan& by_hand, const StageCosts& costs,
                       const LoweringOptions& options = {}, std::string_view weights = "flush", bool trains = true) {
  const Plan plan = reduced(by_hand, costs);
  throw_if_any(validate(schedule, plan, {.iterations = options.iterations, .trains = trains}), "schedule");
  Program program = lower(schedule, plan, costs, policy(weights), options);
  check_program(program);
  return program;
}

/// A schedule of the catalog, checked and lowered with the weights it goes with.
inline Program program_of(std::string_view name, const Plan& by_hand, const StageCosts& costs,
                          const LoweringOptions& options = {}) {
  const Plan plan = reduced(by_hand, costs);
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
  const Schedule schedule = build_schedule(def, {.plan = plan, .costs = costs, .iterations = options.iterations});
  return lowered(schedule, plan, costs, options, def.weights, def.trains);
}

/// The instruction with this text, such as "0>1:0F1".
inline InstructionId find(const Program& program, std::string_view text) {
  for (std::size_t i = 0; i < program.size(); ++i)
    if (const InstructionId id{i}; to_text(program, id) == text) return id;
  throw InternalError("no instruction " + std::string(text));
}

}  // namespace stagecraft::test
