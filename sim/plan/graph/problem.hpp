#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sim/core/dag.hpp"
#include "sim/core/numbers.hpp"
#include "sim/plan/device_mix.hpp"

namespace stagecraft::graph {

constexpr int kMostChoices = 24;

/// One number for each choice of replicas.
using ByChoice = std::array<double, kMostChoices>;

inline ByChoice all_choices(double value) {
  ByChoice all;
  all.fill(value);
  return all;
}

/// What a stage has of its layers, for one micro-batch of its largest replica.
struct Sums {
  ByChoice seconds{};                 ///< Forward and backward.
  ByChoice stash{};                   ///< Bytes from forward to backward.
  double update = 0;                  ///< Seconds once in an iteration.
  double weights = 0, optimizer = 0;  ///< Bytes.
  double gradients = 0;               ///< Bytes, which replicas add up once in an iteration.
  double entering = 0;                ///< Bytes of the whole micro-batch from other stages, each tensor once.
};

/// Layers in a DAG for devices of one type, or of a few. All stages have the same micro-batch size. The replicas of a
/// stage are of one type, or of any, and then as slow as the slowest of all there are: each of these is a choice.
struct Problem {
  Digraph layers;  ///< Numbered in topological order.
  int devices = 1, micro_batches = 1;
  std::vector<int> replicas;     ///< Numbers to choose from, rising, from 1; at most kMostChoices.
  std::vector<int> of_type;      ///< Devices of each type; empty: all are of one.
  std::vector<int> type;         ///< Of each choice, or kAnyType; empty: all devices are of one.
  std::vector<Sums> amounts;     ///< Of each layer alone; `entering` is not read.
  std::vector<double> output;    ///< Bytes of a micro-batch that each layer sends to every stage that reads it.
  double operations = 0;         ///< Seconds of every stage beside its layers, for one micro-batch.
  double memory = kInfinity;     ///< Bytes of a device.
  double bandwidth = kInfinity;  ///< Bytes a second between stages.
  ByChoice among_replicas = all_choices(bandwidth);  ///< The same between neighbours of so many replicas.
  ByChoice room = all_choices(memory);               ///< Bytes of a device of each choice, if it is less than `memory`.
  ByChoice own_operations = all_choices(0);          ///< Seconds beside `operations`.

  int size() const { return layers.size(); }
  int choices() const { return static_cast<int>(replicas.size()); }
};

constexpr int kAnyType = -1;  ///< Of a choice.

/// Whether a stage of this choice may keep so many bytes.
inline bool fits(const Problem& p, double bytes, int choice) { return bytes <= p.memory && bytes <= p.room[choice]; }

/// Adds a layer, but for what enters.
void add(Sums&, const Sums& layer, int choices);
Sums sums_of(const Problem&, const std::vector<int>& layers);

/// The devices of a stage's replicas.
struct ReplicaChoice {
  int choice = 0;  ///< Index into Problem::replicas.
  int mix = 0;     ///< How many of each type, as a number of ReplicaMixes.
};

/// How many devices of each type there are: mixes by their numbers from 0, none, to all(). With one type the number is
/// the number of devices. What is within another number can be subtracted from it.
class ReplicaMixes {
 public:
  explicit ReplicaMixes(const Problem&);

  int all() const { return static_cast<int>(mixes_.size()) - 1; }
  const std::vector<int>& of_type(int mix) const { return mixes_[mix].of_type; }
  bool within(int part, int whole) const { return part <= whole && is_within(mixes_[part], mixes_[whole]); }
  const std::vector<ReplicaChoice>& choices() const { return choices_; }

  /// Devices in terms of those of the first type: a device counts for as many as it does the whole model as fast as.
  double worth(int mix) const { return worth_[mix]; }
  /// Device seconds in those terms that a layer takes at least.
  double least_work(const Problem&, const Sums& layer) const;

 private:
  std::vector<DeviceMix> mixes_;
  std::vector<ReplicaChoice> choices_;
  std::vector<double> worth_;
};

/// Seconds of a micro-batch in a stage: computing with its share of the all-reduce and the update, and receiving its
/// inputs and returning their gradients, which go on at the same time as another micro-batch is computed.
struct Times {
  double busy = 0, channel = 0;

  double slowest() const { return busy > channel ? busy : channel; }
  double once() const { return busy + channel; }
};
Times times_of(const Problem&, const Sums&, int choice);

/// Bytes on each device of a stage that is `depth` stages from the end, itself included: one micro-batch for each of
/// them is in flight (GraphPipe, ASPLOS 2025, section 6), and no more than there are.
double memory_of(const Problem&, const Sums&, int choice, int depth);

/// Some layers, and how many devices share their micro-batches.
struct Part {
  std::vector<int> layers;
  int choice = 0;                 ///< Index into Problem::replicas.
  std::vector<int> of_type = {};  ///< Of those, of each type; empty: all devices are of one.
};

/// Stages as nodes; a sequence has each behind the one before.
Digraph stage_graph(const Problem&, const std::vector<Part>&, bool sequential);

/// What a partition costs. A graph: depth and path along its longest chain of stages; a sequence: along all stages, in
/// the order of the list.
struct Figures {
  double bottleneck = 0;  ///< Of the slowest stage or channel, for one micro-batch.
  double path = 0;        ///< One micro-batch forward and back through an empty pipeline.
  double memory = 0;      ///< Of the fullest device.
  bool fits = true;       ///< Every stage into the memory of its devices.
  int depth = 0, devices = 0;
};
Figures figures_of(const Problem&, const std::vector<Part>&, bool sequential);

/// (m - 1) * bottleneck + path: the longest chain of stages fills and drains, the slowest stage sets the pace.
double iteration_of(const Problem&, double bottleneck, double path);

/// No partition has a lower bottleneck: work shared evenly among all devices, or the longest layer alone.
double least_bottleneck(const Problem&);

}  // namespace stagecraft::graph
