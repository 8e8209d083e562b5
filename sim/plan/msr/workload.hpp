#pragma once

#include <optional>
#include <vector>

#include "sim/cost/cost_table.hpp"
#include "sim/cost/stage_memory.hpp"
#include "sim/plan/msr/cuts.hpp"

namespace stagecraft::msr {

/// What one micro-batch costs in a layer, and how large it is.
struct LayerAmounts {
  double seconds = 0;     ///< Forward and backward.
  double output = 0;      ///< Bytes, for the whole micro-batch.
  double parameters = 0;  ///< Bytes.
};

/// Sums over the layers of each cut.
struct Workload {
  Cuts cuts;
  std::vector<double> seconds, outputs, parameters;
  std::vector<double> crossing;  ///< Bytes sent over the cut.

  int last() const { return cuts.count() - 1; }
};

/// Of every layer of the model on this type of device.
std::vector<LayerAmounts> amounts_of(const CostTable&, DeviceTypeId device_type, int samples);
/// Layers by their inputs.
Digraph layer_graph(const ModelGraph&);

/// What is sent over a cut.
enum class Crossing {
  Read,     ///< Each output that a layer behind it reads.
  Frontier  ///< Of the layers that no other of the set reads, and of those in front of one of them that have a reader
            ///< which is not: the released optimizer, which so counts some outputs that all their readers already have.
};

Workload sum_up(const std::vector<LayerAmounts>&, const Digraph&, Cuts, Crossing = Crossing::Read);

/// What one layer of a stage takes and keeps in one of its variants.
struct Way {
  double seconds = 0;
  MemoryUnits memory;
};
/// ways[layer of the stage][variant].
using Ways = std::vector<std::vector<Way>>;

double memory_of(const Ways&, const std::vector<int>& chosen, int in_flight);
double seconds_of(const Ways&, const std::vector<int>& chosen);
std::vector<int> fastest_of(const Ways&);

/// A variant for each layer, so that the stage fits: from the fastest on, the change that costs least time for each
/// byte it saves (Piper, section 4). Nothing when even the smallest do not fit. It knows no
/// MemoryUnits::recompute_peak.
std::optional<std::vector<int>> fit_layers(const Ways&, int in_flight, double memory);

/// The fastest variant in which the whole stage fits.
std::optional<std::vector<int>> fit_stage(const Ways&, int in_flight, double memory);

}  // namespace stagecraft::msr
