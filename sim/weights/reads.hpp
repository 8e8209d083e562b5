#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft {

enum class WeightsFrom : std::uint8_t {
  Version,    ///< The version itself.
  Predicted,  ///< What the stage predicted (or reconstructed) last for this direction.
  Kept,       ///< What the forward of the same micro-batch used.
};

/// The weights that one op uses.
struct WeightRead {
  std::int32_t version = 0;   ///< Updates of the stage that are in it, or in what the prediction starts from.
  std::int32_t horizon = -1;  ///< Not negative: predict (or reconstruct) so many updates first, right before the op.
  WeightsFrom from = WeightsFrom::Version;
};

/// What a rule asks of one stage on one device.
struct StageNeeds {
  int delay = 0;    ///< Most updates between a forward and its backward, counted in the list of ops.
  int buffers = 1;  ///< Weight-sized buffers at the worst moment, scratch and averages included.
};

/// Applies a rule to the order of work: versions depend on the lists alone, never on time.
class WeightReads {
 public:
  WeightReads(const Schedule&, const Plan&, const WeightsRule&);

  /// Of op number `index` in the list of `device`; of an update: the version it makes.
  WeightRead at(DeviceId device, std::size_t index) const;
  StageNeeds needs(StageId stage, int replica) const;
};

}  // namespace stagecraft
