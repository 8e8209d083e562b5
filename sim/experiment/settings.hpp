#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backends/backend.hpp"
#include "sim/config/value.hpp"
#include "sim/cost/profile.hpp"
#include "sim/cost/software.hpp"
#include "sim/plan/load_table.hpp"
#include "sim/program/lower.hpp"
#include "sim/result/economics.hpp"
#include "sim/training/training.hpp"

namespace stagecraft {

/// How a plan is run: `run:` of a scenario, but for its schedule.
struct RunSpec {
  int micro_batches = 1;                  ///< Count in one iteration, in the largest size that a stage uses.
  LoweringOptions lowering;               ///< Without buffers: see lowering_of().
  std::optional<MessageBuffers> buffers;  ///< Nothing: those that the planner counts on.
  double time_dilation = 1;               ///< An emulated run sleeps that many times as long.
  bool emulated = false;                  ///< Real backends sleep for the time of the cost table; messages are real.
  GpuOptions gpu;
  bool collectives_flow = false;  ///< Collectives are messages also where `software` gives their cost.
  bool each_device = false;       ///< Each device of a group has its instructions in simulations.
  bool each_replica = false;      ///< Equal replicas all have their instructions in simulations: no fold_replicas().
  std::optional<BucketRule> buckets;  ///< How sums of gradients are cut; nothing: they begin after the last backward.
  std::uint64_t seed = 1;
  std::shared_ptr<const PackedBatches> packs;  ///< Sequences of different lengths; null: all have the model's.
};

/// The parts of a scenario that need neither its model nor its cluster.
struct Settings {
  RunSpec run;        ///< The lowering options lack what the weights policy adds.
  Training training;  ///< Without `training:` in the scenario, a task that fits every model.
  bool has_training = false;
  TrainingBudget budget;
  Profiles profiles;
};

/// Reads them from a checked scenario. InputError for choices that contradict each other.
Settings read_settings(const config::Value& tree);

}  // namespace stagecraft
