#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sim/core/dag.hpp"
#include "sim/core/numbers.hpp"
#include "sim/planners/shared/device_mix.hpp"

// The problem that planners of graphs solve: layers as a graph with their costs on each choice of replicas, and what
// a stage of them costs.

namespace stagecraft::graph {

constexpr int kMostChoices = 24;

/// One number for each choice of replicas.
using ByChoice = std::array<double, kMostChoices>;

inline ByChoice all_choices(double value) {
  ByChoice amounts;
  amounts.fill(value);
  return amounts;
}

/// Amounts of a stage, summed over its layers, for one micro-batch of its largest replica.
struct Sums {
  ByChoice seconds{};                 ///< Seconds of forward and backward.
  ByChoice stash{};                   ///< Bytes kept from forward to backward.
  double update = 0;                  ///< Seconds once in an iteration.
  double weights = 0, optimizer = 0;  ///< Bytes.
  double gradients = 0;               ///< Bytes that replicas all-reduce once in an iteration.
  double entering = 0;                ///< Bytes of the whole micro-batch from other stages, each tensor once.
};

/// Layers in a DAG for devices of one type, or of a few. All stages have the same micro-batch size. A choice of
/// replicas has their number and their type; replicas of any type are as slow as the slowest of all devices.
struct GraphProblem {
  Digraph layers;  ///< Numbered in topological order.
  int devices = 1, micro_batches = 1;
  int unit = 1;                  ///< Devices of one type that stages take together; numbers of replicas are multiples.
  std::vector<int> replicas;     ///< Numbers to choose from, rising, from 1; at most kMostChoices.
  std::vector<int> of_type;      ///< Number of devices of each type; empty: there is one type.
  std::vector<int> type;         ///< Type of each choice, or kAnyType; empty: there is one type.
  std::vector<Sums> amounts;     ///< Amounts of each layer alone; `entering` is not read.
  std::vector<double> output;    ///< Bytes of a micro-batch that each layer sends to every stage that reads it.
  bool trains = true;            ///< False: no layer has a gradient, so none is sent or kept.
  double operations = 0;         ///< Overhead of every stage in seconds for one micro-batch.
  double memory = kInfinity;     ///< Bytes of a device.
  double bandwidth = kInfinity;  ///< Bytes a second between stages.
  ByChoice among_replicas = all_choices(bandwidth);  ///< Bytes a second between neighboring replicas of each choice.
  ByChoice memory_by_choice = all_choices(memory);   ///< Bytes of a device of each choice, if less than `memory`.
  ByChoice own_operations = all_choices(0);          ///< Overhead of each choice in addition to `operations`.

  int size() const { return layers.size(); }
  int choices() const { return static_cast<int>(replicas.size()); }
};

constexpr int kAnyType = -1;  ///< Marks a choice whose replicas may have any types.

/// Whether a stage of this choice may keep this number of bytes.
inline bool fits(const GraphProblem& p, double bytes, int choice) {
  return bytes <= p.memory && bytes <= p.memory_by_choice[choice];
}

/// Adds all amounts of a layer except `entering`.
void add(Sums&, const Sums& layer, int choices);
Sums sums_of(const GraphProblem&, const std::vector<int>& layers);

/// The devices of a stage's replicas.
struct ReplicaChoice {
  int choice = 0;  ///< Index into GraphProblem::replicas.
  int mix = 0;     ///< How many units of each type, as a number of ReplicaMixes.
};

/// Numbers every mix of units of devices of several types from 0, the empty mix, to full(). With one type the number of
/// a mix is its number of units. The number of a mix can be subtracted from the number of a mix that contains it.
class ReplicaMixes {
 public:
  explicit ReplicaMixes(const GraphProblem&);

  int full() const { return static_cast<int>(mixes_.size()) - 1; }
  /// Devices of each type.
  std::vector<int> of_type(int mix) const;
  bool within(int part, int whole) const { return part <= whole && is_within(mixes_[part], mixes_[whole]); }
  const std::vector<ReplicaChoice>& choices() const { return choices_; }

  /// Speed of a mix on the whole model, in units of the first type.
  double worth(int mix) const { return worth_[mix]; }
  /// Least seconds that a layer takes, times the worth of its devices.
  double least_work(const GraphProblem&, const Sums& layer) const;

 private:
  int unit_;
  std::vector<DeviceMix> mixes_;
  std::vector<ReplicaChoice> choices_;
  std::vector<double> worth_;
};

/// Seconds of a micro-batch in a stage: `busy` is compute with its share of the all-reduce and the update; `channel` is
/// receiving its inputs and returning their gradients, which overlaps with the compute of other micro-batches.
struct Times {
  double busy = 0, channel = 0;

  double slowest() const { return busy > channel ? busy : channel; }
  double once() const { return busy + channel; }
};
Times times_of(const GraphProblem&, const Sums&, int choice);

/// Bytes on each device of a stage that is `depth` stages from the end, itself included: one micro-batch for each of
/// these stages is in flight (GraphPipe, ASPLOS 2025, section 6), and at most all micro-batches.
double memory_of(const GraphProblem&, const Sums&, int choice, int depth);

/// Some layers, and how many devices share their micro-batches.
struct GraphStage {
  std::vector<int> layers;
  int choice = 0;                 ///< Index into GraphProblem::replicas.
  std::vector<int> of_type = {};  ///< Number of its devices of each type; empty: there is one type.
};

/// The layers divided into stages, by a search that minimized `value`.
struct Partition {
  std::vector<GraphStage> parts;  ///< Inputs come before readers; a sequence is in its order.
  double value = 0;               ///< Seconds of an iteration, or of the bottleneck.
  std::int64_t states = 0;        ///< What the search visited: stages and partial partitions, or solved subproblems.
};

/// A graph with stages as nodes; in a sequence each stage follows the one before.
Digraph stage_graph(const GraphProblem&, const std::vector<GraphStage>&, bool sequential);

/// Costs of a partition. In a graph, depth and path are along the longest chain of stages; in a sequence, along all
/// stages in the order of the list.
struct PartitionFigures {
  double bottleneck = 0;  ///< Seconds of the slowest stage or channel for one micro-batch.
  double path = 0;        ///< Seconds of one micro-batch forward and back through an empty pipeline.
  double memory = 0;      ///< Bytes on the fullest device.
  bool fits = true;       ///< Every stage fits into the memory of its devices.
  int depth = 0, devices = 0;
};
PartitionFigures figures_of(const GraphProblem&, const std::vector<GraphStage>&, bool sequential);

/// (m - 1) * bottleneck + path: the longest chain of stages fills and drains, the slowest stage sets the pace.
double iteration_of(const GraphProblem&, double bottleneck, double path);

/// Lower bound on the bottleneck of every partition: work shared evenly among all devices, or the longest layer alone.
double least_bottleneck(const GraphProblem&);

}  // namespace stagecraft::graph
