#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/id_vector.hpp"
#include "sim/core/quantity.hpp"
#include "sim/schedule/op_kind.hpp"

namespace stagecraft {

/// One computation of a stage on one micro-batch. Micro-batches are counted by the stage's own size and run on
/// through the iterations; an Update carries the number of the update instead.
struct Op {
  OpKind kind = OpKind::Forward;
  bool fused = false;  ///< Runs as one with the next op of the list: both wait for the inputs of both, and their
                       ///< outputs leave at the end.
  StageId stage;
  std::int32_t micro = 0;

  friend bool operator==(const Op&, const Op&) = default;
};

/// How the ranks of a pipeline compute the scores of a vocabulary that they divide (PlanVocabulary). S makes the scores
/// of a micro-batch, a barrier of all ranks sums up its loss, and T makes the gradients that need it (Yeung et al.,
/// Balancing Pipeline Parallelism with Vocabulary Parallelism, arXiv 2411.05288, algorithms 1 and 2).
enum class VocabularyPasses : std::uint8_t {
  None,
  OneBarrier,  ///< S makes the gradient of its input too, which the barrier after S sums.
  TwoBarriers  ///< T makes it, and a second barrier, after T, sums it.
};

/// The result of the search that found an order.
struct ScheduleSearch {
  Seconds time, bound;  ///< The time of the order, and a lower bound of all orders.
  bool period = true;   ///< Times are of an iteration among others; else of one alone.
  std::string reason;   ///< What the bound comes from.
  std::string from;     ///< "search", or the known schedule that could not be improved.

  friend bool operator==(const ScheduleSearch&, const ScheduleSearch&) = default;
  double gap() const { return bound.value > 0 ? time / bound - 1 : 0; }
};

/// The order in which each pipeline rank runs its ops; all its devices run the same order. There is no time in it.
struct Schedule {
  IdVector<RankId, std::vector<Op>> ranks;
  IdVector<DeviceId, RankId> rank_of = {};  ///< Empty: rank r is device r alone.
  int drain_every = 1;  ///< Iterations between two drains, after which nothing is in flight; 0: only the end.
  IdVector<StageId, int> updates = {};  ///< Updates in one iteration; empty: one each.
  std::optional<ScheduleSearch> search = {};
  VocabularyPasses vocabulary = VocabularyPasses::None;

  friend bool operator==(const Schedule&, const Schedule&) = default;
  int device_count() const { return static_cast<int>(rank_of.empty() ? ranks.size() : rank_of.size()); }
  RankId rank(DeviceId d) const { return rank_of.empty() ? RankId{d.value} : rank_of[d]; }
  const std::vector<Op>& row(DeviceId d) const { return ranks[rank(d)]; }
  std::vector<std::span<const Op>> device_rows() const&;
  void device_rows() && = delete;  ///< The rows belong to the schedule.
  std::size_t op_count() const;    ///< The ops of all devices.
  int updates_of(StageId s) const { return updates.empty() ? 1 : updates[s]; }
};

/// Whether an op passes a gradient on: B, or I when the backward is split.
inline bool passes_gradient(OpKind kind) { return kind == OpKind::Backward || kind == OpKind::InputGradient; }
/// Whether an op completes the gradients of its micro-batch: B, or W when the backward is split.
inline bool ends_backward(OpKind kind) { return kind == OpKind::Backward || kind == OpKind::WeightGradient; }
/// The index after the ops that run as one with the op at `first`.
std::size_t group_end(const std::vector<Op>& ops, std::size_t first);

std::string to_text(const Op&);                ///< "0F1" is stage 0, forward, micro-batch 1; "0U2" its third update.
std::optional<Op> parse_op(std::string_view);  ///< The whole text must match.
std::string to_grid(const Schedule&);          ///< One row a device, in order.
/// "period 77, at most 6.9 % too long: no order is shorter than 72 (the work of rank 0)", in any unit.
std::string to_text(const ScheduleSearch&, const std::function<std::string(Seconds)>& time);

}  // namespace stagecraft
