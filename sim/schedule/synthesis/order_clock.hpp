#pragma once

#include <array>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/schedule/synthesis/scheduling_problem.hpp"

namespace stagecraft::synthesis {

/// How long an order takes: the first iteration, and one of several back to back. Infinite when it deadlocks.
struct Score {
  double makespan = kInfinity;
  double period = kInfinity;
};

/// The position of a step in the rows.
struct StepPosition {
  int rank = 0, index = 0;
};

/// Evaluates orders: every step runs as soon as its row and its inputs allow, messages go one after the other on the
/// card of the sender, gradients of tied weights are exchanged at the end of an iteration. It gives the times of the
/// simulator without contention, rendezvous and replicas. O(steps) for each iteration.
///
/// It is not a Dispatcher: the search spends most of its time here, each row runs as far as it can before the next one
/// is looked at, and no order of visits can change a time.
class OrderClock {
 public:
  explicit OrderClock(const SchedulingProblem&);

  /// Runs one iteration or, for the period, iterations until all ranks advance by the same time; eight at most.
  Score score(const Rows&, bool with_period);
  /// The steps that the last end of the last score() waited for without a gap, last first, through its last two
  /// iterations.
  std::vector<StepPosition> critical_path(const Rows&) const;
  std::int64_t steps_run() const { return steps_run_; }

 private:
  /// What critical_path() needs of one iteration.
  struct Record {
    std::vector<std::uint32_t> from;        ///< [slot]: the step whose message came last.
    std::vector<std::vector<char>> waited;  ///< [rank][index]: whether the step waited for a message, not for its row.
    std::vector<StepPosition> last;         ///< [rank]: the step that its end waits for.
  };
  /// When something is available, and the step that it comes from.
  struct Ready {
    double time = 0;
    StepPosition from;
  };
  bool run_iteration(const Rows&);
  void run_row(const Rows&, int rank);
  void send(const std::vector<Output>&, int kind, int rank, double end, Step);
  void exchange(Record&);
  double last_end() const;

  const SchedulingProblem& problem_;
  bool updates_ = false;
  // Slots are the inputs of steps: 2 * piece of its forward, 2 * piece + 1 of its gradient.
  std::vector<int> missing_;
  std::vector<double> ready_;
  std::vector<double> free_, card_;  ///< [rank]: when it, and its network card, become free.
  std::vector<int> index_, blocked_, finished_, awake_;
  std::vector<Ready> last_gradient_;  ///< [stage]
  std::vector<Ready> exchanged_;      ///< [stage]: what its update waits for.
  std::vector<Ready> exchanging_;     ///< [rank]: the end of its last exchange.
  std::array<Record, 2> records_;
  int iteration_ = 0;
  std::int64_t steps_run_ = 0;
};

}  // namespace stagecraft::synthesis
