#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/schedule/builder.hpp"
#include "sim/schedule/synthesis/exchanges.hpp"

namespace stagecraft::synthesis {

enum Kind : std::uint32_t { kForward, kInputGradient, kWeightGradient, kBackward };

/// One op of one iteration: its kind and its piece, which numbers (stage, micro-batch).
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

/// What one stage costs on its rank, in seconds.
struct StageTimes {
  double forward = 0, input_gradient = 0, weight_gradient = 0, backward = 0;
  double prelude = 0;  ///< Recomputation, which needs no gradient and comes in front of the op that does.
  double update = 0;
  double of(Kind) const;
  double whole() const { return forward + prelude + input_gradient + weight_gradient; }
};

/// Data that a finished step sends on: to the forward, or to the gradient, of a piece.
struct Output {
  int piece = 0;
  double sending = 0;  ///< The sender's network card is taken for so long.
  double delay = 0;    ///< Until it is there, from the end of sending.
  bool exact = true;   ///< False between replicas, which all have their own ways.
};

/// Something that a rank may hold only so much of: bytes, or micro-batches.
struct Resource {
  std::vector<double> stash;     ///< Of each stage: a micro-batch, from F to W, or B.
  std::vector<double> boundary;  ///< What F takes of it; the op that passes the gradient takes the rest, recomputed.
  std::vector<double> most;      ///< Of each rank.
  double freed_at_input = 0;     ///< Share of the stash that I gives back; W, or B, gives the rest.

  double taken_by(Step, int stage) const;
  double given_by(Step, int stage) const;
};
using Limit = std::vector<Resource>;

/// The order of one iteration as a shop with a machine for each rank: what is to be done, what it waits for, and what
/// it keeps. Memory is counted op by op along a row; no time is needed for it.
struct Problem {
  explicit Problem(const ScheduleInput&);

  int ranks() const { return static_cast<int>(stages.size()); }
  int pieces() const { return static_cast<int>(stage_of.size()); }
  int micro_of(int piece) const { return piece - first_piece[stage_of[piece]]; }
  double seconds(Step s) const { return times[stage_of[s.piece()]].of(s.kind()); }

  /// The rows of a schedule for one iteration, without updates and recomputations.
  Rows rows_of(const Schedule& iteration) const;
  Schedule schedule_of(const Rows&) const;

  std::vector<std::vector<int>> stages;             ///< Of each rank.
  std::vector<std::vector<DeviceId>> rank_devices;  ///< More than one: replicas, which run the same row.
  std::vector<int> rank_of;                         ///< Of each stage.
  std::vector<StageTimes> times;                    ///< Of each stage: the slowest of its replicas.
  std::vector<StageTimes> least;                    ///< The quickest of them.
  std::vector<double> busy;                         ///< Of each rank: the work of its busiest device in an iteration.
  std::vector<int> micros, first_piece;             ///< Of each stage.
  std::vector<int> stage_of;                        ///< Of each piece.
  std::vector<std::vector<int>> micro_numbers;      ///< Of each stage: what its pieces are called in the plan.
  std::vector<std::vector<Output>> forward_outputs, gradient_outputs;  ///< Of each piece.
  std::vector<int> inputs;  ///< Of each piece: 2 * piece forwards, 2 * piece + 1 gradients.
  std::vector<int> order;   ///< Stages, inputs first.
  Exchanges exchanges;
  int devices = 0;
};

/// The most that each rank holds along its row.
std::vector<double> peaks(const Problem&, const Rows&, const Resource&);
bool row_fits(const Problem&, const std::vector<Step>& row, int rank, const Limit&);
bool fits(const Problem&, const Rows&, const Limit&);
/// Each of F, I, W or F, B once, in this order, for every piece of every rank.
bool well_formed(const Problem&, const Rows&);

}  // namespace stagecraft::synthesis
