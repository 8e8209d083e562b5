#pragma once

#include <cstdint>
#include <vector>

namespace stagecraft::spp {

/// Bandwidth between every two devices; symmetric, the diagonal is not read.
using Bandwidths = std::vector<std::vector<double>>;

/// The devices on the two sides of a least cut (Stoer and Wagner, J. ACM 44, 1997). O(n^3). Needs two devices or more.
std::pair<std::vector<int>, std::vector<int>> least_cut(const Bandwidths&, const std::vector<int>& devices);

/// Devices in a line that crosses each slow cut once: both sides of a least cut, each ordered recursively, in the
/// direction with the fastest junction (Luo et al., INFOCOM 2022, recursive device ordering). Groups with equally slow
/// links between them are ordered one after another, which needs no cut: O(n^2) for each level of a hierarchy.
std::vector<int> order_devices(const Bandwidths&);

/// Layers in a line for devices in a line.
struct LineProblem {
  int micro_batches = 1;
  bool trains = true;         ///< False: no gradient is computed, sent or summed.
  int unit = 1;               ///< Stages take whole units of as many neighboring devices.
  int group = 1;              ///< `bandwidth` is between the first of as many neighbors; divides `unit`.
  std::vector<int> replicas;  ///< Numbers of replicas to choose from: `unit`, and each twice the one before.
  /// [device][which of `replicas`][layer]: seconds of the forward, and of the backward, of all layers before it for one
  /// replica's share of a micro-batch.
  std::vector<std::vector<std::vector<double>>> forward, backward;
  std::vector<double> cut;        ///< Bytes of a micro-batch that enter each layer from all layers before it.
  std::vector<double> gradients;  ///< Bytes of the gradients of all layers before each layer, and of all layers.
  Bandwidths bandwidth;           ///< Bytes a second between groups of devices, in the order of the line.
  std::vector<double> inside;     ///< [group]: the slowest link inside; empty for groups of one device.

  int layers() const { return static_cast<int>(cut.size()); }
  int devices() const { return static_cast<int>(bandwidth.size()) * group; }
  int units() const { return devices() / unit; }
};

/// Consecutive layers on consecutive devices.
struct LineStage {
  int first_layer = 0, last_layer = 0;  ///< Layers [first, last).
  int first_device = 0, replicas = 1;
};

struct Division {
  std::vector<LineStage> parts;
  double bottleneck = 0;  ///< Seconds of a micro-batch in the slowest part or channel, with a share of the all-reduce.
};

/// The division with the least bottleneck for each number of parts from 1 on, without impossible numbers. The dynamic
/// program over devices used, replicas of the last part, parts and layers (Luo et al., INFOCOM 2022).
/// O(parts * layers^2 * units * replicas^2). Adds the number of visited partial divisions to `states`.
std::vector<Division> divide(const LineProblem&, std::int64_t& states);

/// Seconds of an iteration in which every device and channel runs its blocks by micro-batch + block number, the later
/// block first among equals, with the all-reduce at the end. Without the all-reduce it is at most
/// (1 + (4 parts - 4) / micro-batches) times the time of any order.
double play(const LineProblem&, const std::vector<LineStage>&);

/// Seconds of one part: forward, backward, its all-reduce, and sending the input of a micro-batch one way.
struct PartTimes {
  double forward = 0, backward = 0, all_reduce = 0, input = 0;
};
/// `before`: the part that feeds this part, or null.
PartTimes times_of(const LineProblem&, const LineStage&, const LineStage* before);

}  // namespace stagecraft::spp
