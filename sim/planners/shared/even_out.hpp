#pragma once

#include <vector>

namespace stagecraft {

/// Time of the layers before each position.
using LayerSums = std::vector<double>;

/// A stage as one device runs it.
struct StageShare {
  int stage = 0;
  const LayerSums* sums = nullptr;
  double micro_batches = 1;  ///< Share of all micro-batches that this device runs.
};

/// Time of one device, whose stages are layers bounds[s] .. bounds[s+1]-1.
double load_of(const std::vector<StageShare>& device, const std::vector<int>& bounds);

/// Time of the busiest device.
double largest_load(const std::vector<std::vector<StageShare>>& devices, const std::vector<int>& bounds);

/// Lower bound on the time of the busiest device for any division of the layers. With any weights y that sum to 1 it is
/// the sum over layers of the least y * time on a device, times the copies of each layer; exact for fractions of layers
/// when devices differ only by a factor, because y is proportional to their speed.
double least_load(const std::vector<std::vector<StageShare>>& devices);

/// Moves one boundary at a time to any position between its neighbors, or several adjacent ones by one layer, as long
/// as that makes the list of device loads, busiest first, smaller. No stage becomes empty. The result is a local
/// optimum, never worse than the start; sums of the same layers that differ in their last digits count as equal.
void even_out(std::vector<int>& bounds, const std::vector<std::vector<StageShare>>& devices);

}  // namespace stagecraft
