#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/enqueue.hpp"
#include "backends/cuda/iterations.hpp"

namespace stagecraft::cuda {

/// Runs iterations one after the other, with a barrier between them. The work of an iteration is recorded first; where
/// it equals that of an earlier iteration, a graph of it is launched.
///
/// An iteration is launched without recording it where recording could only give the same words. They depend on the
/// instructions, on the arrays that stay between iterations, on the layout of free memory, and, for updates, on how
/// many there were. So after two iterations with the same graph, the next is not recorded if its instructions are those
/// of the one before (Iteration::repeats) and if arrays and layout are as they were before that one. Then they are the
/// same after it, too. With several processes all of these decisions are common ones, because NCCL wants all ranks to
/// capture and launch alike: a graph is launched if it is the iteration of every process, and captured otherwise; an
/// iteration is launched without recording it if every process would do so. Its updates are recorded all the same and
/// compared. Every kCompareEvery-th iteration and the last of each such series are recorded in full; InternalError if
/// they differ from what was launched.
class Repeater {
 public:
  /// The bits that all processes have set; all of them come to each call.
  using CommonBits = std::function<std::uint64_t(std::uint64_t)>;

  Repeater(GpuRuntime& runtime, Enqueuer& enqueuer, std::vector<Iteration> iterations, CommonBits common_bits)
      : runtime_(runtime),
        enqueuer_(enqueuer),
        iterations_(std::move(iterations)),
        common_bits_(std::move(common_bits)) {}

  /// Runs the first `count` iterations. `makes`: captures a graph of work that has none yet.
  void run(real::Session&, InstructionEvents&, std::size_t count, bool makes);

  /// Whether it is so in all processes; all of them come here.
  bool everywhere(bool here) { return common_bits(here) != 0; }
  std::size_t size() const { return iterations_.size(); }
  /// Statistics of the last run: host seconds of each iteration, launched call by call or as a graph.
  struct RepeatStats {
    std::vector<double> by_calls, by_graph;
    int instantiated = 0, launched = 0, recorded = 0;
    std::string why_not;
    double calls = 0;  ///< Driver calls of the iteration with the most.
  };
  const RepeatStats& stats() const { return stats_; }

 private:
  struct CachedGraph {
    CommandRecorder::CommandWords words;
    Graph graph;
  };
  static constexpr std::size_t kCompareEvery = 16;
  using HostState = std::optional<std::vector<std::uint64_t>>;  ///< Nothing: the next iteration may do anything.
  bool body(std::size_t k, bool makes);
  void repeat(std::size_t k);
  HostState host_state() const;
  bool play(const CommandRecorder&, bool makes);
  std::uint64_t common_bits(std::uint64_t local);
  void make(const CommandRecorder&);
  void launch();
  void capture(const CommandRecorder&);

  GpuRuntime& runtime_;
  Enqueuer& enqueuer_;
  std::vector<Iteration> iterations_;
  CommonBits common_bits_;
  double waited_ = 0;  ///< Seconds until other processes had decided.
  std::deque<CachedGraph> graphs_;
  const CachedGraph* last_ = nullptr;  ///< The graph of the last iteration; null: it was not one.
  bool twice_ = false;                 ///< The iteration before the last had the same graph.
  HostState before_last_;
  CommandRecorder::CommandWords updates_;  ///< Update words of the last iteration.
  real::Session* session_ = nullptr;
  RepeatStats stats_;
};

/// A run that is set up; `play` enqueues and waits until all of it is over.
struct Stage {
  const Program& program;
  GpuRuntime& runtime;
  Enqueuer& enqueuer;
  real::Session& session;
  InstructionEvents& events;
  std::function<void(const std::function<void()>& enqueue)> play;
};

/// Runs the whole program, call by call. `warm_up`: the first iteration is run beforehand, so that kernels are loaded,
/// algorithms chosen and memory taken before the clock runs.
Enqueued play_by_calls(const Stage&, bool warm_up);

/// Runs iteration by iteration, in graphs where they repeat. Before that, two of them are run until they take no more
/// memory, and once more for the graphs.
Enqueued play_by_graphs(const Stage&, Repeater&, bool warm_up);

}  // namespace stagecraft::cuda
