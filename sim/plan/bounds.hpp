#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/cost/cost_table.hpp"
#include "sim/plan/plan.hpp"

/// What no plan on some devices beats, whichever planner made it and whatever its links and its order of work.
/// Messages, memory and updates are left out: they only add to the times.
namespace stagecraft::bounds {

struct Question {
  const CostTable& costs;
  std::vector<DeviceId> devices;
  int micro_batch = 1;    ///< Most samples of one; a stage may divide it among replicas, or they take turns.
  int micro_batches = 1;  ///< In one iteration.
  bool trains = true;     ///< Else forwards alone.
  /// Gradients of weights may be taken later than those of inputs, while other layers are under way.
  bool split_backward = false;
};

/// A time for one micro-batch, on average over an iteration.
struct Bound {
  Seconds each;
  std::string reason;
};

/// All work divided among the devices as if layers could be split: of unlike devices the best that a linear programme
/// can do, from below by its prices. It holds for every plan.
Bound work(const Question&);

/// The longest operation of one layer, shared by as many replicas as there may be. It holds for every plan.
Bound longest(const Question&);

/// One micro-batch through the longest path of layers, each on the device that suits it best. It holds for every
/// iteration that starts with the weights of the one before. With backwards that are split, from some layer to the end
/// and back to its input gradient, and the gradient of its weights, which its next forward waits for.
Bound path(const Question&);

/// The best division of the layers into convex stages, each on devices of its own (the dynamic programme over all sets
/// of layers that hold their inputs; Tarnawski et al., NeurIPS 2020). `flushed`: of an iteration that starts with the
/// weights of the one before, in which a stage waits for the layers in front of it, once there and back:
///
///   min over divisions of max over stages of m seconds(stage) + longest path in front of it
///
/// but where backwards are split: then gradients of weights fill that wait. None where the sets are too many.
std::optional<Bound> stages(const Question&, bool flushed);

/// What is known of a plan that a bound is for.
struct Kind {
  bool whole_stages = true;  ///< Of whole layers, and no device has two.
  bool flushed = true;       ///< Every iteration starts with the weights of the one before.
};
Kind kind_of(const Plan&, bool flushed);

/// The largest of those that hold for such a plan.
Bound best(const Question&, const Kind&);

/// The best bounds of questions with the same costs, each reckoned once.
class Known {
 public:
  const Bound& best(const Question&, const Kind&);
  std::size_t reckoned() const { return known_.size(); }

 private:
  using Key = std::tuple<std::vector<DeviceId>, int, int, bool, bool, bool, bool>;
  std::map<Key, Bound> known_;
};

/// seconds[type][layer] on one of count[type] devices, shared as evenly as can be: the least time of the device that is
/// busy longest when layers may be split. With a price y for a second of each type
///
///   min T : sum_l seconds x <= count T   =   max over y of (sum over layers of min over types of y seconds) / sum
///   count y
///
/// and every y gives a bound (duality of linear programmes). Exact, to rounding, for two types.
double shared_work(const std::vector<std::vector<double>>& seconds, const std::vector<int>& counts);

}  // namespace stagecraft::bounds
