#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/cost/cost_table.hpp"
#include "sim/plan/plan.hpp"

/// Lower bounds on the time of every plan on some devices, for any planner, links and schedule. They ignore messages,
/// memory and updates, which only add to the times.
namespace stagecraft::bounds {

struct BoundQuery {
  const CostTable& costs;
  std::vector<DeviceId> devices;
  int micro_batch = 1;    ///< Most samples of one; a stage may divide it among replicas, or they take turns.
  int micro_batches = 1;  ///< Number in one iteration.
  bool trains = true;     ///< False: the devices run forwards only.
  /// Weight gradients may be computed later than input gradients, while other layers run.
  bool split_backward = false;
};

/// A lower bound on the time of one micro-batch, averaged over an iteration.
struct Bound {
  Seconds each;
  std::string reason;
};

/// All work divided among the devices as if layers could be split: on unlike devices the optimum of a linear program,
/// bounded from below by its dual prices. It holds for every plan.
Bound work(const BoundQuery&);

/// The price of all work of a micro-batch, each layer on the type of device where it costs least. `prices`: of a
/// second, by the number of the type. It holds for every plan, on any number of these devices.
double least_price(const BoundQuery&, const IdVector<DeviceTypeId, double>& prices);

/// The longest operation of one layer, shared by as many replicas as there may be. It holds for every plan.
Bound longest(const BoundQuery&);

/// One micro-batch through the longest path of layers, each on the device where it is fastest. It holds for every
/// iteration that starts with the weights of the one before. With split backwards, the path goes from some layer to the
/// end and back to its input gradient and its weight gradient, which its next forward waits for.
Bound path(const BoundQuery&);

/// The best division of the layers into convex stages, each on its own devices (the dynamic program over all sets of
/// layers that contain their inputs; Tarnawski et al., NeurIPS 2020). `flushed`: each iteration starts with the weights
/// of the one before, so a stage waits once for the layers in front of it, forward and back:
///
///   min over divisions of max over stages of m seconds(stage) + longest path in front of it
///
/// With split backwards that wait does not count, because weight gradients fill it. Nothing if there are too many sets.
std::optional<Bound> stages(const BoundQuery&, bool flushed);

/// Properties of a plan that decide which bounds hold for it.
struct Kind {
  bool whole_stages = true;  ///< Stages consist of whole layers, and no device has two stages.
  bool flushed = true;       ///< Every iteration starts with the weights of the one before.
  bool divided = false;      ///< Groups of devices divide layers, which take less time than on one device.
};
Kind kind_of(const Plan&, bool flushed);

/// The largest of the bounds that hold for such a plan.
Bound best(const BoundQuery&, const Kind&);

/// A cache of the best bounds of questions with the same costs; it computes each bound once.
class BoundCache {
 public:
  const Bound& best(const BoundQuery&, const Kind&);
  std::size_t size() const { return known_.size(); }

 private:
  using Key = std::tuple<std::vector<DeviceId>, int, int, bool, bool, bool, bool, bool>;
  std::map<Key, Bound> known_;
};

/// Least time of the busiest device when layers may be split, where a layer takes seconds[type][layer] on one of
/// count[type] devices. With a price y for a second of each type
///
///   min T : sum_l seconds x <= count T   =   max over y of (sum over layers of min over types of y seconds) / sum
///   count y
///
/// and every y gives a bound (duality of linear programs). The result is exact, up to rounding, for two types.
double shared_work(const std::vector<std::vector<double>>& seconds, const std::vector<int>& counts);

}  // namespace stagecraft::bounds
