#pragma once

#include <vector>

namespace stagecraft {

/// Time of the layers before each position.
using LayerSums = std::vector<double>;

/// A stage as one device runs it.
struct StageShare {
  int stage = 0;
  const LayerSums* sums = nullptr;
  double micro_batches = 1;  ///< Of all: the part that this device has.
};

/// Time of one device, whose stages are layers bounds[s] .. bounds[s+1]-1.
double load_of(const std::vector<StageShare>& device, const std::vector<int>& bounds);

/// That of the busiest.
double largest_load(const std::vector<std::vector<StageShare>>& devices, const std::vector<int>& bounds);

/// However layers are divided, the busiest device takes no less. With any weights y that sum to 1 that is the sum over
/// layers of the least y * time on a device, times the copies of each layer; exact for fractions of layers where
/// devices differ by a factor alone, since y is taken as their speed.
double least_load(const std::vector<std::vector<StageShare>>& devices);

/// Moves one boundary at a time, anywhere between its neighbours, or several that are neighbours by one layer, as long
/// as that makes the list of device loads, busiest first, smaller. No stage becomes empty. What it ends with is a local
/// optimum, never worse than the start; sums of the same layers that differ in their last digits are as good.
void even_out(std::vector<int>& bounds, const std::vector<std::vector<StageShare>>& devices);

}  // namespace stagecraft
