#pragma once

#include <algorithm>

#include "sim/core/quantity.hpp"

namespace stagecraft {

/// What a layer or a stage keeps on one device, each thing counted once. The units of the layers of a stage add up, but
/// for `recompute_peak` and `workspace`: their backwards run one after the other, so the largest counts.
struct MemoryUnits {
  Bytes weights{};          ///< One version.
  Bytes gradients{};        ///< The gradient of one update.
  Bytes optimizer{};        ///< All states of the optimizer.
  Bytes stash{};            ///< What one micro-batch keeps from its forward to its backward.
  Bytes recompute_stash{};  ///< What the second forward of a stage adds to the stash until the backward ends.
  Bytes recompute_peak{};   ///< What the backward of one layer recomputes for itself.
  Bytes workspace{};        ///< Other memory of one backward: a gradient in fp32, or fp32 copies of scores of words.

  /// Memory of one backward that is free before and after it.
  Bytes backward_peak() const { return recompute_peak + workspace; }
  /// The stash of a micro-batch whose backward is about to run.
  Bytes whole_stash() const { return stash + recompute_stash; }
  MemoryUnits& operator+=(const MemoryUnits& other) {
    weights += other.weights, gradients += other.gradients, optimizer += other.optimizer;
    stash += other.stash, recompute_stash += other.recompute_stash;
    recompute_peak = std::max(recompute_peak, other.recompute_peak);
    workspace = std::max(workspace, other.workspace);
    return *this;
  }
};

/// Number of each unit that a device holds when it is fullest. Micro-batches of different sizes have separate units,
/// whose stashes add up.
struct MemoryCounts {
  int in_flight = 0;   ///< Micro-batches between their forward and their backward.
  int versions = 1;    ///< Buffers of the size of the weights.
  int gradients = 1;   ///< Separate buffers of gradients; 0 where nothing is trained.
  int optimizers = 1;  ///< 0 where nothing is trained.
  int momenta = 0;     ///< States of the size of the weights that the optimizer lacks.
};

/// Memory that one device needs for a stage when it is fullest.
struct StageMemory {
  Bytes weights{}, gradients{}, optimizer{};
  Bytes stash{};           ///< Stashes of all micro-batches in flight.
  Bytes recompute_peak{};  ///< Memory that one backward needs in addition to the stashes.

  Bytes resident() const { return weights + gradients + optimizer; }
  Bytes total() const { return resident() + stash + recompute_peak; }
};

/// The memory model of planners, searches, checks and programs. A planner whose paper counts differently passes other
/// counts. Messages that wait for the op that uses them come on top; only a Program knows them.
constexpr StageMemory stage_memory(const MemoryUnits& units, const MemoryCounts& counts) {
  return {.weights = units.weights * counts.versions,
          .gradients = units.gradients * counts.gradients,
          .optimizer = units.optimizer * counts.optimizers + units.weights * counts.momenta,
          .stash = units.stash * counts.in_flight,
          .recompute_peak =
              counts.in_flight > 0 ? units.recompute_stash + units.recompute_peak + units.workspace : Bytes{}};
}

constexpr StageMemory stage_memory(const MemoryUnits& units, int in_flight, int versions = 1) {
  return stage_memory(units, {.in_flight = in_flight, .versions = versions});
}

}  // namespace stagecraft
