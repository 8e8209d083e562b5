#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/enqueue.hpp"

namespace stagecraft::cuda {

/// The instructions of one iteration, in two parts: those of a graph, and updates that follow it.
struct Iteration {
  std::vector<InstructionId> body, updates;
};

/// Iterations one behind the other; `updates_apart`: because somebody looks at the weights behind them. Where
/// iterations cannot be taken apart there are none, and why_not says so.
std::vector<Iteration> iterations_of(const Program&, bool updates_apart, std::string& why_not);

/// Plays iterations one behind the other, with a barrier between them. What one tells the streams is written down
/// first; where that is what an earlier one told them, a graph of it is launched.
class Repeater {
 public:
  Repeater(Yard& yard, Enqueuer& enqueuer, std::vector<Iteration> iterations)
      : yard_(yard), enqueuer_(enqueuer), iterations_(std::move(iterations)) {}

  /// The first so many. `makes`: graphs of what has none yet.
  void run(real::Session&, Marks&, std::size_t count, bool makes);

  std::size_t size() const { return iterations_.size(); }
  /// Of the newest run; times of each iteration, by how it was told.
  struct Told {
    std::vector<double> by_calls, by_graph;
    int made = 0, launched = 0;
    std::string why_not;
  };
  const Told& told() const { return told_; }

 private:
  struct Kept {
    Tape::Words words;
    Graph graph;
  };
  bool body(const Iteration&, bool makes);
  bool play(const Tape&, bool makes);
  void capture(const Tape&);

  Yard& yard_;
  Enqueuer& enqueuer_;
  std::vector<Iteration> iterations_;
  std::deque<Kept> kept_;
  Told told_;
};

/// A run that is set up: who is told, and how one waits until all of it is over.
struct Stage {
  const Program& program;
  Yard& yard;
  Enqueuer& enqueuer;
  real::Session& session;
  Marks& marks;
  std::function<void(const std::function<void()>& enqueue)> play;
};

/// The whole program, call by call. `warm_up`: the first iteration is run beforehand, so that kernels are loaded,
/// algorithms chosen and memory taken before the clock runs.
Enqueued play_by_calls(const Stage&, bool warm_up);

/// Iteration by iteration, in graphs where they repeat. Beforehand two of them are run until they take no more memory,
/// and once more for the graphs.
Enqueued play_by_graphs(const Stage&, Repeater&, bool warm_up);

}  // namespace stagecraft::cuda
