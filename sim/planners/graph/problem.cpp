// Time, memory and path of stages and partitions of a graph of layers, a lower bound for all partitions, and the mixes
// of devices that stages may have; all planners of graphs share them.

#include "sim/planners/graph/problem.hpp"

#include <algorithm>
#include <set>

#include "sim/cluster/phases.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/cost/stage_memory.hpp"

namespace stagecraft::graph {
Digraph stage_graph(const GraphProblem& p, const std::vector<GraphStage>& parts, bool sequential) {
  std::vector<int> part_of(p.size(), -1);
  for (std::size_t s = 0; s < parts.size(); ++s)
    for (const int layer : parts[s].layers) part_of[layer] = static_cast<int>(s);
  Digraph graph(static_cast<int>(parts.size()));
  for (int layer = 0; layer < p.size(); ++layer)
    for (const int reader : p.layers.next[layer])
      if (part_of[layer] != part_of[reader]) graph.add(part_of[layer], part_of[reader]);
  for (int s = 1; sequential && s < graph.size(); ++s) graph.add(s - 1, s);
  return graph;
}

void add(Sums& sums, const Sums& layer, int choices) {
  for (int c = 0; c < choices; ++c) {
    sums.seconds[c] += layer.seconds[c];
    sums.stash[c] += layer.stash[c];
  }
  sums.update += layer.update;
  sums.weights += layer.weights;
  sums.optimizer += layer.optimizer;
  sums.gradients += layer.gradients;
}

Sums sums_of(const GraphProblem& p, const std::vector<int>& layers) {
  Sums sums;
  const std::set<int> inside(layers.begin(), layers.end());
  std::set<int> entered;
  for (const int layer : layers) {
    add(sums, p.amounts[layer], p.choices());
    for (const int input : p.layers.previous[layer])
      if (inside.count(input) == 0 && entered.insert(input).second) sums.entering += p.output[input];
  }
  return sums;
}

Times times_of(const GraphProblem& p, const Sums& sums, int choice) {
  const double r = p.replicas[choice];
  const double all_reduce = r > 1 ? ring_share(p.replicas[choice]) * sums.gradients / p.among_replicas[choice] : 0;
  return {sums.seconds[choice] + p.operations + p.own_operations[choice] + (all_reduce + sums.update) / p.micro_batches,
          (p.trains ? 2 : 1) * sums.entering / (r * p.bandwidth)};
}

double memory_of(const GraphProblem& p, const Sums& sums, int choice, int depth) {
  const MemoryUnits units{.weights = {sums.weights},
                          .gradients = {sums.gradients},
                          .optimizer = {sums.optimizer},
                          .stash = {sums.stash[choice]}};
  return stage_memory(units, std::min(p.micro_batches, depth)).total().value;
}

PartitionFigures figures_of(const GraphProblem& p, const std::vector<GraphStage>& parts, bool sequential) {
  const Digraph graph = stage_graph(p, parts, sequential);
  const auto order = topological_order(graph);
  STAGECRAFT_CHECK(order.has_value());
  const std::vector<int> depth = depth_to_sink(graph);
  std::vector<double> path(parts.size(), 0);
  PartitionFigures f;
  for (auto s = order->rbegin(); s != order->rend(); ++s) {
    const GraphStage& part = parts[*s];
    const Sums sums = sums_of(p, part.layers);
    const Times times = times_of(p, sums, part.choice);
    for (const int next : graph.next[*s]) path[*s] = std::max(path[*s], path[next]);
    path[*s] += times.once();
    f.bottleneck = std::max(f.bottleneck, times.slowest());
    f.path = std::max(f.path, path[*s]);
    const double memory = memory_of(p, sums, part.choice, depth[*s]);
    f.memory = std::max(f.memory, memory);
    f.fits = f.fits && fits(p, memory, part.choice);
    f.depth = std::max(f.depth, depth[*s]);
    f.devices += p.replicas[part.choice];
  }
  return f;
}

double iteration_of(const GraphProblem& p, double bottleneck, double path) {
  return (p.micro_batches - 1) * bottleneck + path;
}

namespace {

/// Device seconds of the whole model on each type alone, the first as one.
std::vector<double> slownesses(const GraphProblem& p, std::size_t types) {
  std::vector<double> slow(types, 0);
  for (const Sums& layer : p.amounts)
    for (std::size_t t = 0; t < types && types > 1; ++t) {
      double fastest = kInfinity;
      for (int c = 0; c < p.choices(); ++c)
        if (p.type[c] == static_cast<int>(t)) fastest = std::min(fastest, layer.seconds[c] * p.replicas[c]);
      slow[t] += fastest;
    }
  const double first = slow.front();
  for (double& s : slow) s = first > 0 && s > 0 ? s / first : 1;
  return slow;
}

}  // namespace

ReplicaMixes::ReplicaMixes(const GraphProblem& p) : unit_(p.unit) {
  std::vector<int> types = p.of_type.empty() ? std::vector<int>{p.devices} : p.of_type;
  for (int& count : types) count /= p.unit;
  const std::vector<double> slow = slownesses(p, types.size());
  mixes_ = DeviceMixes(types).list();
  for (const DeviceMix& mix : mixes_) {
    double worth = 0;
    for (std::size_t t = 0; t < types.size(); ++t) worth += mix.of_type[t] / slow[t];
    worth_.push_back(worth);
  }
  for (int c = 0; c < p.choices(); ++c)
    for (int m = 1; m <= full(); ++m) {
      const DeviceMix& mix = mixes_[m];
      if (mix.devices * p.unit != p.replicas[c]) continue;
      const auto kinds = std::count_if(mix.of_type.begin(), mix.of_type.end(), [](int n) { return n > 0; });
      const int type = p.type.empty() ? 0 : p.type[c];
      if (type == kAnyType ? kinds > 1 : kinds == 1 && mix.of_type[type] > 0) choices_.push_back({c, m});
    }
}

std::vector<int> ReplicaMixes::of_type(int mix) const {
  std::vector<int> devices = mixes_[mix].of_type;
  for (int& count : devices) count *= unit_;
  return devices;
}

double ReplicaMixes::least_work(const GraphProblem& p, const Sums& layer) const {
  double min_work = kInfinity;
  for (const ReplicaChoice& replica : choices_)
    min_work = std::min(min_work, layer.seconds[replica.choice] * worth(replica.mix));
  if (choices_.empty())
    for (int c = 0; c < p.choices(); ++c) min_work = std::min(min_work, layer.seconds[c] * p.replicas[c] / unit_);
  return min_work;
}

double least_bottleneck(const GraphProblem& p) {
  const ReplicaMixes mixes(p);
  double work = 0, longest = 0;
  for (const Sums& layer : p.amounts) {
    double fastest = kInfinity;
    for (int c = 0; c < p.choices(); ++c) fastest = std::min(fastest, layer.seconds[c]);
    work += mixes.least_work(p, layer);
    longest = std::max(longest, fastest);
  }
  return std::max(work / mixes.worth(mixes.full()), longest);
}

}  // namespace stagecraft::graph
