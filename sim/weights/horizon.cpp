#include "sim/weights/horizon.hpp"

namespace stagecraft {

int forward_horizon(Horizon horizon, const StagePlace& place, int exact) {
  const int k = place.stage, depth = place.depth, each = place.micro_batches;
  switch (horizon) {
    case Horizon::Exact:
      return exact;
    case Horizon::StageDepth:
      return (depth - 1 - k + each - 1) / each;
    case Horizon::StageDepthPlusOne:
      return depth - k;
    case Horizon::ToCompletion:
      return k / 2 + depth - 1 - k;
    case Horizon::PerMiniBatch:
      // round((T + D - k/2 - 2) / T), halves up. Twice the numerator, so that k/2 is whole.
      return (2 * (each + depth - 2) - k + each) / (2 * each);
  }
  return 0;
}

int backward_horizon(Horizon horizon, const StagePlace& place) {
  switch (horizon) {
    case Horizon::Exact:
    case Horizon::StageDepth:
    case Horizon::StageDepthPlusOne:
      return 0;
    case Horizon::ToCompletion:
      return place.stage / 2;
    case Horizon::PerMiniBatch:
      return (place.micro_batches + place.stage / 2 - 1) / place.micro_batches;
  }
  return 0;
}

}  // namespace stagecraft
