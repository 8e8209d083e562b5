#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "sim/result/diagnosis.hpp"
#include "sim/result/economics.hpp"
#include "sim/result/idle.hpp"
#include "sim/result/interval.hpp"
#include "sim/result/time_classes.hpp"

namespace stagecraft {

/// Peak memory of a device, split at the moment of the peak.
struct MemoryPeak {
  Bytes total, resident, stash, received, outgoing;
  Bytes capacity;       ///< Memory of the device without `reserved`; zero when not known.
  Bytes reserved;       ///< Memory of the device that the model may not use.
  Bytes host;           ///< Most that it has in the memory of its host, at any time; not in `total`.
  InstructionId at;     ///< The instruction whose start made the peak; not valid when nothing comes and goes.
  int activations = 0;  ///< Most whole stashes alive: from forward, or recomputation, to backward.

  bool fits() const { return capacity.value <= 0 || total <= capacity; }
};

struct DeviceReport {
  bool used = false;       ///< Any stage runs here; what follows is zero otherwise, and totals leave it out.
  Seconds busy;            ///< In ops and in collectives of its ops, in the first iteration.
  double utilisation = 0;  ///< Share of the whole run in which it is busy.
  TimeClasses time;        ///< Where its time goes in one period.
  IdleTimes idle;          ///< What it waits for in the whole run, outside of ops.
  MemoryPeak memory;
  Joules energy;
};

/// Devices with the same place in the pipeline that do the same: see pipeline_ranks.hpp.
struct PipelineRank {
  RankId rank;
  std::vector<StageId> stages;
  DeviceId first;   ///< The first of its devices that has instructions.
  int devices = 1;  ///< All, with those that the instructions of others stand for.
  int tensor = 1, context = 1;
  double busy = 0;   ///< As DeviceReport::utilisation.
  TimeClasses time;  ///< Where the time of each device goes in one period.
  MemoryPeak memory;
  ResidentMemory resident;

  int replicas() const { return devices / (tensor * context); }
  Bytes messages() const { return memory.received + memory.outgoing; }
};

struct LinkReport {
  LinkId link;
  bool forward = true;     ///< Always where both directions divide the bandwidth.
  Bytes traffic;           ///< Messages, and what ops read and write of memory that is shared, as bytes of copies.
  double utilisation = 0;  ///< traffic / (bandwidth * length of the run); 0 when it is not shared.
};

/// Every number of a run, from its Program and Timeline alone, so that a prediction and a measurement of the same
/// quantity cannot differ by definition.
struct Report {
  Seconds makespan;  ///< The first iteration, from its first start to its last end: fill and drain included.
  /// What one more iteration costs back to back, from the last ends of the iterations: T(K) - T(K-1) where they stand
  /// apart; else the mean slope over the second half of those between the first and the last. Never less than the work
  /// of the busiest device. With drains every few iterations: the mean over the last whole interval. In a real run: the
  /// median of T(K) - T(K-1) without the first iteration. The makespan when only one ran.
  Seconds period;
  std::vector<double> iterations;  ///< Seconds of each, where loads make them differ; else empty.
  Seconds length;                  ///< Time of the whole run, all iterations.
  bool instruction_times = true;   ///< Otherwise only iterations were timed, and what is within them is NaN.
  bool drains = true;              ///< Every device is through with an iteration before it starts the next.
  /// Where the time of a period goes, mean over the used devices. It sums to the period.
  TimeClasses time;
  double bubble = 0;         ///< Its share that is waiting for other stages: TimeClasses::bubble.
  double fill = 0;           ///< Share of the first iteration in which the pipeline fills, mean over the used devices.
  double drain = 0;          ///< Share of the first iteration in which it drains.
  double steady_bubble = 0;  ///< Share of a period in which the busiest device is not busy.
  double throughput = 0;     ///< Samples per second at the period.
  Joules energy;             ///< Zero when the cluster gives no power figures.
  IdVector<DeviceId, DeviceReport> devices;
  std::vector<PipelineRank> ranks;             ///< The used devices with equal ones folded; run() adds it.
  std::vector<LinkReport> links;               ///< Busiest first; only links with traffic.
  std::vector<Bytes> host_peaks;               ///< [index in Cluster::memories]: most that devices have there.
  std::optional<DeviceRates> rates;            ///< What one device does at the period.
  std::optional<PredictionInterval> interval;  ///< The interval of predicted times; the caller of run() adds it.
  std::optional<Economics> economics;          ///< Time and cost of a training; run() adds it.
  Diagnosis diagnosis;                         ///< What limits the run; the caller of run() adds it.
  std::vector<InstructionId> critical_path;
  Seconds critical_compute, critical_transfer, critical_wait;  ///< Sum to `length`.
};

Report measure(const Program&, const Timeline&, const Cluster&);

/// The lengths, the period and the energy of a simulated run, and how busy each device is, for searches that compare
/// thousands of runs: no memory, no links, no causes of waiting and no critical path.
Report measure_times(const Program&, const Timeline&, const Cluster&);

}  // namespace stagecraft
