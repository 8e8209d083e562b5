#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// An input of the released dnn-partitioning (Tarnawski et al., NeurIPS 2020; msr-fiddle/dnn-partitioning).
struct DnnPartitioning {
  /// One layer for each set of nodes that have to share a device: nodes of one color class, such as a forward node and
  /// its backward node, and nodes between them. Their sizes become parameters.
  ModelGraph model;
  int devices = 1;  ///< Accelerators.
  Bytes memory;     ///< Memory of an accelerator.
  bool trains = false;
  std::vector<std::string> warnings;  ///< Input that is allowed, but looks wrong.
};

/// Bytes a second between an accelerator and the memory of the host: the files have times of transfers in milliseconds,
/// with this bandwidth where they come with sizes.
constexpr double kHostBandwidth = 2147483648.0;

/// Reads the JSON: latencies and costs in milliseconds, sizes in bytes. A backward node belongs to the layer of its
/// color class; one without a forward node is a layer without a forward.
DnnPartitioning read_dnn_partitioning(std::string_view json, const std::string& file);

/// A scenario that asks for the stages with the least latency of one sample within memory. A tensor goes through the
/// memory of the host, so it takes its cost twice: the link has half of kHostBandwidth.
std::string dnn_partitioning_scenario(const DnnPartitioning&);

}  // namespace stagecraft
