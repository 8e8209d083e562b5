#pragma once

#include <vector>

#include "sim/planners/chain_partition/piper.hpp"

namespace stagecraft::chain_partition {

/// The layers between two cuts, all in the variant of the same number.
struct WholeStage {
  std::vector<double> seconds;         ///< Seconds of a micro-batch on each type of device.
  double bytes_in = 0, bytes_out = 0;  ///< Bytes over the edges that the two cuts divide, in both directions.
  double parameters = 0;               ///< Bytes that replicas reduce.
  MemoryUnits units{};

  double memory(int in_flight) const { return stage_memory(units, in_flight).total().value; }
  /// Seconds with this number of replicas, on devices that compute alone for `compute` seconds (see piper.cpp).
  double seconds_with(double compute, int replicas, const PiperInput&) const;
};

/// Sums over stages whose layers all run in the variant of the same number. Along a chain of cuts it adds one layer to
/// the stage before, so that the stages of n layers take n^2 / 2 additions instead of n^3 / 6.
class WholeStages {
 public:
  /// The inputs, one for each type of device, differ in the seconds of layers and in memory.
  WholeStages(const std::vector<const PiperInput*>& inputs, const Cuts&, int tensor);

  /// The stage in each variant; empty if a layer cannot have this degree of tensor parallelism. Valid until the next
  /// call.
  const std::vector<WholeStage>& between(int from, int to);

 private:
  struct CutEdge {
    int from, to;               ///< Layers.
    std::size_t output, input;  ///< Number of the edge among those that leave `from`, and among those that enter `to`.
  };
  void find_crossing(int cut);
  void add(int layer);
  void set_bytes(int from, int to);

  const Cuts& cuts_;
  const Digraph& graph_;
  std::vector<std::vector<const std::vector<PiperVariant>*>> variants_;  ///< [type][layer]
  std::vector<int> added_;                      ///< [cut] The layer that it adds to the cut before; -1: another number.
  std::vector<std::vector<CutEdge>> crossing_;  ///< [cut] Edges from its layers to the others.
  int from_ = -1, to_ = -1;                     ///< The cuts that `wholes_` is between.
  bool is_empty_ = true;                        ///< `wholes_` has no layer yet.
  std::vector<WholeStage> wholes_;
};

}  // namespace stagecraft::chain_partition
