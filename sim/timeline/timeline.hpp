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
};

/// The loss of the real weights, all stages after the same number of updates, on a fixed set of samples.
struct Evaluation {
  int updates = 0;
  double loss = 0;
};

/// What only a real run knows.
struct Learnt {
  bool diverged = false;       ///< Numbers grew beyond all bounds; what is known is from before.
  std::vector<double> losses;  ///< Of each iteration: mean over its samples, as the pipeline saw them.
  std::vector<Evaluation> evaluations;
  IdVector<DeviceId, MeasuredMemory> memory;
  IdVector<InstructionId, std::int32_t> versions;  ///< Updates that were in the weights it used; -1: none.
  IdVector<StageId, std::vector<double>> weights;  ///< Of the first replica, at the end; operations in order.
};

/// What it took the host to tell a GPU about one iteration, waiting left out.
struct Enqueued {
  Seconds by_calls;      ///< Median of those that were told call by call; zero: there are none.
  Seconds by_graph;      ///< Of those that were a graph.
  int graphs = 0;        ///< That had to be made while the clock ran.
  int launches = 0;      ///< Of graphs.
  std::string no_graph;  ///< Why there was none where one was asked for.
};

/// What happened: start and end of every instruction of a Program, by its number.
///
/// Seconds are doubles, not integer nanoseconds: two simulators are compared to 1e-9 of runs that last
/// milliseconds, which a nanosecond cannot show.
struct Timeline {
  Clock clock = Clock::Simulated;
  IdVector<InstructionId, double> start, end;
  bool instruction_times = true;  ///< Otherwise each has the start and end of its iteration: nothing else was timed.
  std::optional<Learnt> learnt;   ///< Of runs that really compute.
  std::optional<Enqueued> enqueued;
  Provenance provenance;
  int processes = 1;          ///< That ran it together.
  Seconds clock_uncertainty;  ///< Between times of different processes.
  bool elsewhere = false;     ///< Another process has it; here is nothing.

  Seconds start_of(InstructionId i) const { return {start[i]}; }
  Seconds end_of(InstructionId i) const { return {end[i]}; }
  Seconds last_end() const;
};

}  // namespace stagecraft
