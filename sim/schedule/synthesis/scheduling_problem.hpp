#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/schedule/builder.hpp"

// One iteration of a plan as a job shop: a machine for each rank, a step for each op, and messages between them. All
// parts of the search for an order read it.

namespace stagecraft::synthesis {

enum Kind : std::uint32_t { kForward, kInputGradient, kWeightGradient, kBackward };

/// One op of one iteration: its kind and its piece, which is a number for a stage and a micro-batch.
struct Step {
  std::uint32_t code = 0;
  Step() = default;
  Step(Kind kind, int piece) : code(static_cast<std::uint32_t>(piece) * 4 + kind) {}
  Kind kind() const { return static_cast<Kind>(code % 4); }
  int piece() const { return static_cast<int>(code / 4); }
  bool passes_gradient() const { return kind() == kInputGradient || kind() == kBackward; }
  bool frees() const { return kind() == kWeightGradient || kind() == kBackward; }
  friend bool operator==(Step, Step) = default;
};

/// An order: a row of steps for each rank.
using Rows = std::vector<std::vector<Step>>;

/// What one stage costs on its rank.
struct StageTimes {
  double forward = 0, input_gradient = 0, weight_gradient = 0, backward = 0;
  double prelude = 0;  ///< Recomputation: it runs before the backward and needs no gradient.
  double update = 0;
  double time_of(Kind) const;
  double whole() const { return forward + prelude + input_gradient + weight_gradient; }
};

/// Data that a finished step sends to the forward, or to the gradient, of another piece.
struct Output {
  int piece = 0;
  double sending = 0;  ///< How long the sender's network card is busy.
  double delay = 0;    ///< Time from the end of sending to the arrival.
  bool exact = true;   ///< False where messages may be shorter: between replicas, whose routes differ.
};

/// Something of which a rank may hold a limited amount: bytes, or micro-batches.
struct Resource {
  std::vector<double> stash;     ///< [stage]: what a micro-batch takes from F to W, or B.
  std::vector<double> boundary;  ///< [stage]: what F takes of it; recomputation takes the rest in the backward.
  std::vector<double> capacity;  ///< [rank]
  double freed_at_input = 0;     ///< Share of the stash that I gives back; W, or B, gives the rest.

  double taken_by(Step, int stage) const;
  double given_by(Step, int stage) const;
};
using ResourceLimits = std::vector<Resource>;

/// The all-reduce of the gradients of tied weights, which starts after the last gradient of all their stages.
struct TiedSum {
  std::vector<int> stages;
  double time = 0;      ///< The time of the slowest ring.
  double min_time = 0;  ///< The time of the quickest ring.
};

struct Exchanges {
  std::vector<TiedSum> list;  ///< In the order in which a device takes part in them.
  std::vector<int> updates;   ///< Stages with tied weights, in the order of their updates at the end of a row.
  std::vector<bool> tied;     ///< [stage]
};

/// The order of one iteration as a job shop with a machine for each rank: the steps, what they wait for, and what they
/// hold. Memory is counted op by op along a row; no time is needed for it.
struct SchedulingProblem {
  /// All times in seconds.
  explicit SchedulingProblem(const ScheduleInput&);
  /// A copy with all times in the common unit of the passes, for searches.
  SchedulingProblem in_common_unit() const;

  int ranks() const { return static_cast<int>(stages.size()); }
  int pieces() const { return static_cast<int>(stage_of.size()); }
  int micro_of(int piece) const { return piece - first_piece[stage_of[piece]]; }
  /// The piece of a stage that has this micro-batch of the plan.
  int piece_with(int stage, int micro) const;

  /// The rows of a schedule for one iteration, without updates and recomputations.
  Rows rows_of(const Schedule& iteration) const;
  Schedule schedule_of(const Rows&) const;

  std::vector<std::vector<int>> stages;             ///< [rank]
  std::vector<std::vector<DeviceId>> rank_devices;  ///< [rank]; several devices are replicas with the same row.
  std::vector<int> rank_of;                         ///< [stage]
  std::vector<StageTimes> times;                    ///< [stage]: the times of the slowest replica.
  std::vector<StageTimes> min_times;                ///< [stage]: no op of the quickest replica takes less.
  std::vector<double> busy;                         ///< [rank]: the work of its busiest device in an iteration.
  std::vector<int> micros, first_piece;             ///< [stage]
  std::vector<int> stage_of;                        ///< [piece]
  std::vector<std::vector<int>> micro_numbers;      ///< [stage]: the micro-batches of its pieces in the plan, rising.
  std::vector<std::vector<Output>> forward_outputs, gradient_outputs;  ///< [piece]
  std::vector<int> inputs;  ///< How many: [2 * piece] of the forward, [2 * piece + 1] of the gradient.
  std::vector<int> order;   ///< Stages, inputs first.
  Exchanges exchanges;
  Schedule empty;  ///< A row for each rank of the plan.
};

/// The most that each rank holds along its row.
std::vector<double> peaks(const SchedulingProblem&, const Rows&, const Resource&);
bool row_fits(const SchedulingProblem&, const std::vector<Step>& row, int rank, const ResourceLimits&);
bool fits(const SchedulingProblem&, const Rows&, const ResourceLimits&);
/// Whether every piece runs F, I, W or F, B once, in this order, on its rank.
bool well_formed(const SchedulingProblem&, const Rows&);

}  // namespace stagecraft::synthesis
