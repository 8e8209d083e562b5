#pragma once

#include <string_view>

#include "sim/core/catalog.hpp"

namespace stagecraft {

/// Everything a version rule may look at. All counts are of one stage since its last drain.
struct VersionInput {
  int stage_depth = 0;     ///< Stages behind this one on the longest path to a sink.
  int pipeline_depth = 1;  ///< Stages on the longest path of the plan.
  int micro = 0;           ///< q, counted through the iterations.
  int micro_batches = 1;   ///< m, in one iteration.
  int updates_before = 0;  ///< Updates of this stage earlier in its device's list.
};

/// Which weights version a forward and a backward use: orthogonal to the order of work.
/// One file in sim/weights/policies/.
struct WeightsDef {
  std::string_view name, summary, source;
  bool needs_flush = false;  ///< True: only right when every iteration drains.
  int (*forward)(const VersionInput&);
  int (*backward)(const VersionInput&);
  int (*copies)(const VersionInput&);  ///< Weight-sized buffers a stage holds.
};

namespace weights {
Catalog<WeightsDef> all();
}

}  // namespace stagecraft
