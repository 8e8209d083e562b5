#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/id_vector.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

enum class Clock : std::uint8_t { Simulated, Host, Device };

/// Where numbers come from; printed with everything people may quote.
struct Provenance {
  std::string backend, backend_version;  ///< "simgrid", "3.32".
  std::string stagecraft_version;
  std::string machine;        ///< Empty for simulated clocks: the answer does not depend on it.
  std::string scenario_hash;  ///< SHA-256 of the resolved scenario.
  std::uint64_t seed = 0;
};

/// Most memory that was really taken on one device: in all, and of each kind at its own worst moment.
struct MeasuredMemory {
  Bytes total, weights, gradients, optimizer, activations;
  int weight_buffers = 0;  ///< Most weight-sized buffers alive at once, all stages of the device together.
  Bytes host;              ///< Taken for the device in the memory of its host.
};

/// The loss of the real weights, all stages after the same number of updates, on a fixed set of samples.
struct Evaluation {
  int updates = 0;
  double loss = 0;
};

/// Results that only a real run has.
struct Learnt {
  bool diverged = false;       ///< Numbers grew beyond all bounds; what is known is from before.
  std::vector<double> losses;  ///< [iteration]: mean loss over its samples, as the pipeline saw them.
  std::vector<Evaluation> evaluations;
  IdVector<DeviceId, MeasuredMemory> memory;
  IdVector<InstructionId, std::int32_t> versions;  ///< Number of updates in the weights it used; -1: it used none.
  IdVector<StageId, std::vector<double>> weights;  ///< Final weights of the first replica; operations in order.
};

/// Host time to enqueue one iteration on a GPU, without waiting.
struct Enqueued {
  Seconds by_calls;      ///< Median over iterations enqueued call by call; zero: there are none.
  Seconds by_graph;      ///< Median over iterations launched as a graph.
  int graphs = 0;        ///< Number of graphs made while the clock ran.
  int launches = 0;      ///< Number of graph launches.
  int recorded = 0;      ///< Graph launches before which the iteration was recorded and compared with the graph.
  std::string no_graph;  ///< Why there was no graph although one was asked for.
  double calls =
      0;  ///< Driver calls that put work into streams, for each iteration; with graphs, for the one with most.
  int streams = 0;                          ///< Streams of the run.
  std::vector<std::string> timed_products;  ///< Matrix products whose algorithm was chosen by timing, and the choice;
                                            ///< all others take the first that the library names.
  std::vector<std::string> attention;       ///< What computes each attention in mixed precision, and why.
  std::string warning;  ///< Why measured times may be longer than the work itself takes; empty: no reason is known.
};

/// What happened: start and end of every instruction of a Program, by its number.
///
/// Seconds are doubles, not integer nanoseconds: two simulators are compared to 1e-9 of runs that last
/// milliseconds, which a nanosecond cannot show.
struct Timeline {
  Clock clock = Clock::Simulated;
  IdVector<InstructionId, double> start, end;
  bool instruction_times = true;  ///< Otherwise each has the start and end of its iteration: nothing else was timed.
  std::optional<Learnt> learnt;   ///< Empty in simulated runs.
  std::optional<Enqueued> enqueued;
  IdVector<InstructionId, double> core_waits;  ///< Seconds in and before each computation in which its thread could
                                               ///< run and had no core; empty: not known.
  std::vector<double>
      lateness;  ///< Seconds by which each sleep that took the place of a computation ended late; rising.
  Provenance provenance;
  int processes = 1;          ///< Number of processes that ran it together.
  Seconds clock_uncertainty;  ///< How far times of another process may be off.
  bool elsewhere = false;     ///< Another process has the timeline; this one is empty.

  Seconds start_of(InstructionId i) const { return {start[i]}; }
  Seconds end_of(InstructionId i) const { return {end[i]}; }
  Seconds last_end() const;
};

}  // namespace stagecraft
