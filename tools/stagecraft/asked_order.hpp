#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/plan/stage_costs.hpp"
#include "sim/program/program.hpp"
#include "sim/result/report.hpp"
#include "sim/schedule/builder.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/schedule_file.hpp"

namespace stagecraft::commands {

/// A schedule of the catalog on -p ranks, -m micro-batches and -v chunks, with --set for its options.
struct NamedSchedule {
  const ScheduleDef* def;
  std::optional<config::Value> options;
  Plan plan;

  int slices() const;  ///< Slices of a sequence if the micro-batches are slices; else 1.
  ScheduleInput input(const StageCosts&, int iterations, const Cluster* = nullptr) const;
};

/// `example` shows how the command is used without a scenario.
NamedSchedule named_schedule(const Arguments&, const std::string& name, int iterations, const char* example);

}  // namespace stagecraft::commands

namespace stagecraft {

/// An order that `schedule` is asked about, from a file or made by name.
struct AskedOrder {
  std::string name;  ///< Name of the schedule or the file.
  Plan plan;
  Schedule one;             ///< One iteration, as given.
  Schedule all_iterations;  ///< Iterations back to back.
  std::string weights = "flush";
  bool trains = true;
  bool copies = false;  ///< Two copies of the model exchange gradients; here that takes no time.
  std::optional<ScheduleSearch> search = {};
  CheckedFile checked = {};  ///< When it has errors, only this and `name` are set.
};

/// Makes an order and checks it as the arguments ask. A schedule by name gets the same checks as an order in a file.
AskedOrder asked_order(const Arguments&, int iterations);

/// The order without updates, as PyTorch writes it and as --file reads it.
Schedule without_updates(Schedule);

/// What ops cost, the same on every stage, in the user's unit of time.
StageCost asked_costs(const Arguments&);
/// Every rank reaches every other with a pure delay.
Cluster delay_cluster(Seconds delay, int ranks);
/// delay_cluster() with the delay that is asked for.
Cluster asked_cluster(const Arguments&, int ranks);

}  // namespace stagecraft

namespace stagecraft {

/// Iterations of a timed order: the period is T(4) - T(3); the last one keeps the pipeline full.
inline constexpr int kTimedIterations = 5;

/// An order with the times of its ops, simulated on `ideal`.
struct TimedOrder {
  Program program;
  Cluster cluster;
  Timeline timeline;
  Report report;
  std::vector<double> peaks;  ///< Peak memory of each rank in stashes of a stage.
};

/// `delay` is the time of a message; `freed_at_input` is the share of a stash that its input gradient frees.
TimedOrder time_order(const AskedOrder&, const StageCost&, Seconds delay, double freed_at_input);

}  // namespace stagecraft
