#pragma once

#include <optional>

#include "sim/plan/stage_cost.hpp"
#include "sim/schedule/builder.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {

/// A schedule of the catalogue on -p ranks, -m micro-batches and -v chunks, with --set for its options.
struct NamedSchedule {
  const ScheduleDef* def;
  std::optional<config::Value> options;
  Plan plan;

  int slices() const;  ///< Of a sequence, where its micro-batches are such; else 1.
  ScheduleInput input(const StageCosts&, int iterations, const Cluster* = nullptr) const;
};

/// `example` shows how the command is used without a scenario.
NamedSchedule named_schedule(const Arguments&, const std::string& name, int iterations, const char* example);

}  // namespace stagecraft::commands
