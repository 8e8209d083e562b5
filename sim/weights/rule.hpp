#pragma once

#include <cstdint>

namespace stagecraft {

enum class ForwardWeights : std::uint8_t {
  Current,       ///< The newest version of the stage.
  DoubleBuffer,  ///< One update old: max(0, u - 1) in iteration u since the drain.
  Vertical,      ///< One version for all stages: max(0, q - (D - 1)) / T for micro-batch q since the drain.
  Predict,       ///< The newest, moved on by a prediction.
};

enum class BackwardWeights : std::uint8_t {
  Current,
  SameAsForward,  ///< The weights of the forward, stashed.
  Predict,
  Reconstruct,  ///< The newest, moved back by an average of the updates since.
};

/// Where a prediction goes: W - lr * horizon * direction.
enum class Direction : std::uint8_t {
  Optimizer,     ///< The last step of the optimizer itself, over lr.
  NextMomentum,  ///< Momentum after one more equal gradient: mu m + (1 - dampening) g; Adam as Optimizer.
  Momentum,      ///< Momentum of the bare gradients, whatever the optimizer.
  Geometric,     ///< The sum of the next `horizon` steps with zero gradients.
};

/// How many updates ahead a prediction reaches. k is the stage (0: input), D the depth, T micro-batches per update.
enum class Horizon : std::uint8_t {
  Exact,              ///< Updates between the forward and its backward, counted in the list of ops.
  StageDepth,         ///< ceil((D - 1 - k) / T), always.
  StageDepthPlusOne,  ///< D - k, always, however many micro-batches an update takes.
  ToCompletion,       ///< Until the micro-batch is through at stage 0: forward floor(k/2) + D-1-k, backward floor(k/2).
  PerMiniBatch,  ///< XPipe: forward round((T + D - k/2 - 2) / T), backward floor((T + floor(k/2) - 1) / T), predicted
                 ///< by the first micro-batch of each update for all of them.
};

enum class Reconstruction : std::uint8_t {
  UpdateAverage,    ///< PipeMare: W - tau * average of the updates.
  GradientAverage,  ///< LayerPipe2: W + tau * lr * average of the gradients.
};

/// The full form of a weights policy: a point in the space of all of them.
struct WeightsRule {
  ForwardWeights forward = ForwardWeights::Current;
  BackwardWeights backward = BackwardWeights::Current;
  Direction direction = Direction::Optimizer;
  Horizon horizon = Horizon::Exact;
  Reconstruction reconstruction = Reconstruction::UpdateAverage;
  int shrink_updates = 0;           ///< PipeMare's K: lr * tau^-(1 - min(t/K, 1)); 0: lr as it is.
  bool spike_compensation = false;  ///< W -= lr (mu^tau v + (1 - mu^tau) / (1 - mu) g): Kosson et al., MLSys 2021.

  bool predicts() const { return forward == ForwardWeights::Predict || backward == BackwardWeights::Predict; }
  bool reconstructs() const { return backward == BackwardWeights::Reconstruct; }
  /// Needs a momentum of bare gradients: one more state of the optimizer, unless the optimizer has the same one.
  bool needs_momentum() const { return predicts() && direction == Direction::Momentum; }
  /// A prediction reaches ahead even where nothing is old, which is wrong in an iteration that drains.
  bool assumes_staleness() const { return predicts() && horizon != Horizon::Exact; }
  /// Every op reads the newest version.
  bool reads_newest() const { return forward == ForwardWeights::Current && backward == BackwardWeights::Current; }

  friend bool operator==(const WeightsRule&, const WeightsRule&) = default;
};

/// Where the weights of an op come from.
enum class WeightsFrom : std::uint8_t {
  Version,    ///< The version itself.
  Predicted,  ///< What the stage predicted (or reconstructed) last for this direction.
  Stashed,    ///< What the forward of the same micro-batch used.
};

}  // namespace stagecraft
