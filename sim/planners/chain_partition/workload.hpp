#pragma once

#include <optional>
#include <vector>

#include "sim/cost/cost_table.hpp"
#include "sim/cost/stage_memory.hpp"
#include "sim/planners/chain_partition/cuts.hpp"

namespace stagecraft::chain_partition {

/// Time and sizes of one micro-batch in a layer.
struct LayerAmounts {
  double seconds = 0;     ///< Seconds of forward and backward.
  double output = 0;      ///< Bytes for the whole micro-batch.
  double parameters = 0;  ///< Bytes.
};

/// Sums over the layers of each cut.
struct Workload {
  Cuts cuts;
  std::vector<double> seconds, outputs, parameters;
  std::vector<double> crossing;  ///< Bytes sent over the cut.

  int last() const { return cuts.count() - 1; }
};

/// Amounts of every layer of the model on this type of device.
std::vector<LayerAmounts> amounts_of(const CostTable&, DeviceTypeId device_type, const Load&);
/// The layers as a graph with an edge from each input to its reader.
Digraph layer_graph(const ModelGraph&);

/// Which outputs cross a cut.
enum class Crossing {
  Read,  ///< Each output that a layer after the cut reads.
  /// Outputs of each layer that no layer of the set reads, and of its ancestors that have another reader besides it and
  /// its ancestors. The released optimizer does this, and so counts some outputs that all their readers already have.
  Frontier
};

Workload sum_up(const std::vector<LayerAmounts>&, const Digraph&, Cuts, Crossing = Crossing::Read);

/// Time and memory of one layer of a stage in one of its variants.
struct LayerVariant {
  double seconds = 0;
  MemoryUnits memory;
};
/// ways[layer of the stage][variant].
using LayerVariants = std::vector<std::vector<LayerVariant>>;

double memory_of(const LayerVariants&, const std::vector<int>& chosen, int in_flight);
double seconds_of(const LayerVariants&, const std::vector<int>& chosen);
std::vector<int> fastest_of(const LayerVariants&);

/// A variant for each layer, so that the stage fits: from the fastest on, the change that costs least time for each
/// byte it saves (Piper, section 4). Nothing when even the smallest variants do not fit. It ignores
/// MemoryUnits::recompute_peak.
std::optional<std::vector<int>> fit_layers(const LayerVariants&, int in_flight, double memory);

}  // namespace stagecraft::chain_partition
