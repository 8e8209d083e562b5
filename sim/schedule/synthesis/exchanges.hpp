#pragma once

#include <vector>

#include "sim/schedule/builder.hpp"

namespace stagecraft::synthesis {

/// The gradients of tied weights are added up between devices, from the last gradient of all their stages on.
struct Exchange {
  std::vector<int> stages;
  double time = 0;   ///< Of the slowest ring.
  double least = 0;  ///< Of the quickest.
};

struct Exchanges {
  std::vector<Exchange> all;  ///< In the order in which a device takes part in them.
  std::vector<int> updates;   ///< Of stages with tied weights; at the end of a row, in this order.
  std::vector<bool> tied;     ///< Of each stage.
};

Exchanges exchanges_of(const ScheduleInput&);

}  // namespace stagecraft::synthesis
