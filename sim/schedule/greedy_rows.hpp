#pragma once

#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "sim/schedule/rank_costs.hpp"

namespace stagecraft {

/// A pass of every micro-batch over all ranks, from one end to the other.
struct Leg {
  OpKind kind;  ///< Forward or InputGradient.
  int chunk;
  bool down;  ///< It goes from rank 0 to the last rank; else from the last rank to rank 0.
};

/// What a zero-bubble schedule is found for. Every message takes `hop`, and each rank has room for `limit`.
struct ZeroBubbleWork {
  std::vector<std::vector<RankCost>> costs;  ///< [rank][chunk]
  int micro_batches;
  double hop, limit;

  ZeroBubbleWork(RankCosts known_costs, int of_micro_batches, double memory)
      : costs(std::move(known_costs.ranks)), micro_batches(of_micro_batches), hop(known_costs.hop), limit(memory) {}
};

/// Rows that grow op by op, each op as soon as its rank is free and its input is there, with the memory and the idle
/// time of every rank. Weight gradients wait in a queue and fill gaps. The policies of the zero-bubble schedules decide
/// which op comes next (Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024).
class GreedyRows {
 public:
  struct RowOp {
    OpKind kind;
    int chunk, micro;
  };

  GreedyRows(const ZeroBubbleWork&, std::span<const Leg>);

  int last_rank() const { return static_cast<int>(ranks_.size()) - 1; }
  int count(int rank, int leg) const { return ranks_[rank].count[leg]; }
  bool has_more(int rank, int leg) const { return count(rank, leg) < work_.micro_batches; }
  double end(int rank) const { return ranks_[rank].end; }
  double memory(int rank) const { return ranks_[rank].memory; }
  double bubble(int rank) const { return ranks_[rank].bubble; }  ///< Idle time after the rank's first forward.
  double worst_bubble() const { return worst_; }
  const std::deque<int>& due_weights(int rank) const { return ranks_[rank].due; }  ///< Chunks of weight gradients.
  const std::vector<RowOp>& row(int rank) const { return ranks_[rank].row; }

  double time_of(int rank, int leg) const;
  double weight_time(int rank, int chunk) const { return work_.costs[rank][chunk].weight_gradient; }
  /// What a pass takes of the memory; negative when it gives some back.
  double memory_change(int rank, int leg) const;

  bool waits_for_rank(int rank, int leg) const { return source(rank, leg) >= 0; }
  /// When the input of the rank's next pass of a leg arrives; minus infinity when it comes from no other rank.
  double arrival(int rank, int leg) const;
  /// Whether that input has been made.
  bool has_input(int rank, int leg) const;
  /// The end of a pass; negative while it has not run.
  double end_of(int rank, int leg, int micro) const { return ends_[leg][rank * work_.micro_batches + micro]; }

  /// Appends the rank's next pass of a leg.
  void put(int rank, int leg);
  /// Appends the weight gradient that is due first.
  void put_weight(int rank);
  /// Appends weight gradients until a pass with this change of memory fits; false when that is not enough.
  bool make_room(int rank, double memory_change);
  /// Appends weight gradients that end before the input of a leg arrives.
  void fill_gap(int rank, int leg);
  /// The time that the rank would be idle if it ran the leg next.
  double gap(int rank, int leg) const { return arrival(rank, leg) - end(rank); }
  void put_all_weights();

 private:
  struct Rank {
    std::vector<RowOp> row;
    std::vector<int> count;    ///< [leg]
    std::vector<int> weights;  ///< [chunk]: weight gradients that have run.
    std::deque<int> due;       ///< Chunks of weight gradients that may run.
    double end = 0, memory = 0, bubble = 0;
  };

  /// The rank that the input of a leg comes from; -1 when it comes from no other rank.
  int source(int rank, int leg) const { return legs_[leg].down ? rank - 1 : rank < last_rank() ? rank + 1 : -1; }

  const ZeroBubbleWork& work_;
  std::span<const Leg> legs_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<double>> ends_;  ///< [leg][rank and micro-batch]
  double worst_ = 0;
};

/// The schedule with these rows.
Schedule schedule_of(const ScheduleInput&, const GreedyRows&);

}  // namespace stagecraft
