#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/cost/stage_memory.hpp"
#include "sim/planners/chain_partition/cuts.hpp"

namespace stagecraft::chain_partition {

/// A layer on the devices of one replica, with or without recomputation, for one degree of tensor parallelism.
struct PiperVariant {
  std::string name;
  double seconds = 0;           ///< Seconds of one micro-batch.
  double parameters = 0;        ///< Bytes that replicas reduce.
  MemoryUnits memory{};         ///< `recompute_peak` is not used where each layer chooses its variant.
  std::vector<double> in, out;  ///< Bytes over each edge when it is cut, in the order of the graph's lists.
};

struct PiperLayer {
  std::string name;
  std::map<int, std::vector<PiperVariant>> by_degree;  ///< Variants for each degree of tensor parallelism.
};

/// The problem that Piper solves (Tarnawski, Narayanan, Phanishayee, NeurIPS 2021, section 3).
struct PiperInput {
  std::vector<PiperLayer> layers;
  Digraph graph;
  int devices = 1;
  int micro_batches = 1;      ///< Number in a batch; every degree of data parallelism divides it.
  double memory = kInfinity;  ///< Bytes of a device.
  double bandwidth = 1;       ///< Bytes a second.
  int most_replicas = std::numeric_limits<int>::max();
  bool whole_stages = false;  ///< All layers of a stage run in the variant of the same number.
};

struct PiperStage {
  int from = 0, to = 0;  ///< Cuts.
  int tensor = 1, data = 1;
  std::vector<int> variants;      ///< Variant of each layer between the cuts.
  double memory = 0;              ///< Bytes on each device.
  std::vector<int> of_type = {};  ///< Number of devices of each type; empty: there is one type.
};

using PiperPlan = ChainPipeline<PiperStage>;

/// Why a search among these cuts would take more than some minutes; empty if it would not.
std::string why_too_long(const PiperInput&, const Cuts&);

/// The stages with the least time of the slowest; nothing when none fit into memory. Exact except for the choice of
/// variants, which saves the cheapest bytes first, as Piper does, unless whole stages choose.
std::optional<PiperPlan> search_piper(const PiperInput&, const Cuts&);

/// Searches on counts[t] devices of each type t, which differ in the seconds of layers and in memory: inputs[t] has
/// both, and all else is equal in every input. A stage may have any devices; whole stages choose variants, and there is
/// no tensor parallelism.
std::optional<PiperPlan> search_piper(const std::vector<PiperInput>& inputs, const std::vector<int>& counts,
                                      const Cuts&);

}  // namespace stagecraft::chain_partition
