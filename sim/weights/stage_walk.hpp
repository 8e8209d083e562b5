#pragma once

#include <vector>

#include "sim/weights/reads.hpp"
#include "sim/weights/rule.hpp"

// Goes over the ops of one stage and says which version of the weights each one reads, by a WeightsRule; `reads`
// does this for all stages.

namespace stagecraft {

/// Where a stage stands, as the formulas of the papers count.
struct StagePlace {
  int stage = 0;          ///< k: stages on the longest path minus stages from here on; 0 at the input of a chain.
  int depth = 1;          ///< D: stages on the longest path.
  int micro_batches = 1;  ///< T: micro-batches of one update.
};

/// Updates that the prediction for a forward reaches ahead, with `exact` updates until its backward. 0: none is needed.
int forward_horizon(Horizon, const StagePlace&, int exact);
/// Updates that the prediction for a backward reaches ahead: none where the horizon ends at the backward itself.
int backward_horizon(Horizon, const StagePlace&);

/// Updates that stand before the forward and the backward of each micro-batch of one stage on one device.
class StageDelays {
 public:
  void add(const Op&);
  bool empty() const { return forward_.empty() && backward_.empty() && updates_ == 0; }
  int updates() const { return updates_; }
  int max_delay() const { return max_delay_; }
  int delay(int micro) const;  ///< 0 for a micro-batch without a backward.

 private:
  std::vector<std::int32_t> forward_, backward_;  ///< [micro-batch]; -1: none.
  int updates_ = 0, max_delay_ = 0;
};

/// Counts the weight buffers alive at once; each lives from where it is made to where it is last used.
class Lifetimes {
 public:
  int make(int at);
  void use(int buffer, int at) { last_[buffer] = at; }
  int peak() const;

 private:
  std::vector<std::int32_t> first_, last_;
};

/// Goes through the ops of one stage on one device in the order of the list, and says what each reads.
class StageWalk {
 public:
  /// `delays` has seen every op of the stage on the device.
  StageWalk(const Plan&, StageId, const StagePlace&, int drain_every, const WeightsRule&, const StageDelays& delays);
  WeightRead next(const Op&);
  /// Call after next() has seen all ops.
  StageNeeds needs();

 private:
  struct Prediction {
    int version = 0, buffer = -1;
    int window = -1;  ///< Update whose micro-batches share the prediction.
  };
  struct Used {
    WeightRead forward, backward;
    int forward_buffer = 0, backward_buffer = -1;
  };
  void update();
  void enter(int micro);
  WeightRead forward(const Op&, int& buffer);
  WeightRead backward(const Op&, int& buffer);
  WeightRead predict(bool backward, int horizon, int& buffer);
  WeightRead version(int number, const Op&, int& buffer);
  int own_index(int micro) const;

  const Stage& stage_;
  StagePlace place_;
  int per_iteration_, own_, drain_every_;  ///< Micro-batches of an iteration, and of them the stage's own.
  WeightsRule rule_;
  const StageDelays& delays_;
  int at_ = 0, updates_ = 0;
  int drained_ = 0, base_ = 0;  ///< First iteration since the drain before the op, and updates done by then.
  int window_ = 0;              ///< Updates from the drain to the one that the op's micro-batch goes into.
  std::vector<int> versions_;   ///< [version]: its number in `lifetimes_`.
  Prediction predictions_[2];   ///< The last prediction for forwards, and for backwards.
  std::vector<Used> used_;      ///< [micro-batch]
  Lifetimes lifetimes_;
};

}  // namespace stagecraft
