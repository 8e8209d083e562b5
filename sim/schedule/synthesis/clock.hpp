#pragma once

#include <array>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/schedule/synthesis/problem.hpp"

namespace stagecraft::synthesis {

/// How long an order takes: the first iteration, and one more of them back to back. Infinite when it never ends.
struct Score {
  double makespan = kInfinity;
  double period = kInfinity;
};

/// Where a step stands.
struct Place {
  int rank = 0, index = 0;
};

/// Plays orders through: every step as soon as its row and its inputs allow, messages one after the other on the card
/// of the sender, gradients of tied weights at the end of an iteration. The same as the simulator has it without
/// contention, rendezvous and replicas. O(steps) for each iteration.
class Clock {
 public:
  explicit Clock(const Problem&);

  /// Plays one iteration, or, for the period, as many as it takes until every rank goes in step; eight at most.
  Score score(const Rows&, bool with_period);
  /// What the last end of the last play waited for without a gap, last first, as far back as the last two iterations.
  std::vector<Place> critical_path(const Rows&) const;
  std::int64_t steps_played() const { return played_; }

 private:
  /// What is kept of one iteration to follow it back.
  struct Record {
    std::vector<std::uint32_t> from;        ///< Of each slot: the step whose message came last.
    std::vector<std::vector<char>> waited;  ///< [rank][index]: for that message, not for its row.
    std::vector<Place> last;                ///< Of each rank: the step that its end waits for.
  };
  /// When something is there, and the step that it comes from.
  struct Ready {
    double time = 0;
    Place from;
  };
  bool play(const Rows&);
  void run(const Rows&, int rank);
  void send(const std::vector<Output>&, int kind, int rank, double end, Step);
  void exchange(Record&);
  double last_end() const;

  const Problem& problem_;
  bool updates_ = false;
  // Slots are the inputs of steps: 2 * piece of its forward, 2 * piece + 1 of its gradient.
  std::vector<int> missing_;
  std::vector<double> ready_;
  std::vector<double> free_, card_;  ///< Of each rank: when it, and its network card, are through.
  std::vector<int> index_, blocked_, finished_, awake_;
  std::vector<Ready> made_, exchanged_;  ///< Of each stage: its last gradient; what its update waits for.
  std::vector<Ready> exchanging_;        ///< Of each rank: the end of its last exchange.
  std::array<Record, 2> records_;
  int iteration_ = 0;
  std::int64_t played_ = 0;
};

}  // namespace stagecraft::synthesis
