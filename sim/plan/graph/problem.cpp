#include "sim/plan/graph/problem.hpp"

#include <algorithm>
#include <set>

#include "sim/cluster/phases.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/plan/graph/stock.hpp"

namespace stagecraft::graph {
namespace {}  // namespace

Digraph stage_graph(const Problem& p, const std::vector<Part>& parts, bool sequential) {
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
  sums.kept += layer.kept;
  sums.gradients += layer.gradients;
}

Sums sums_of(const Problem& p, const std::vector<int>& layers) {
  Sums sums;
  const std::set<int> own(layers.begin(), layers.end());
  std::set<int> entered;
  for (const int layer : layers) {
    add(sums, p.amounts[layer], p.choices());
    for (const int input : p.layers.previous[layer])
      if (own.count(input) == 0 && entered.insert(input).second) sums.entering += p.output[input];
  }
  return sums;
}

Times times_of(const Problem& p, const Sums& sums, int choice) {
  const double r = p.replicas[choice];
  const double all_reduce = r > 1 ? ring_share(p.replicas[choice]) * sums.gradients / p.among_replicas[choice] : 0;
  return {sums.seconds[choice] + p.operations + p.own_operations[choice] + (all_reduce + sums.update) / p.micro_batches,
          2 * sums.entering / (r * p.bandwidth)};
}

double memory_of(const Problem& p, const Sums& sums, int choice, int depth) {
  return sums.kept + std::min(p.micro_batches, depth) * sums.stash[choice];
}

Figures figures_of(const Problem& p, const std::vector<Part>& parts, bool sequential) {
  const Digraph graph = stage_graph(p, parts, sequential);
  const auto order = topological_order(graph);
  STAGECRAFT_CHECK(order.has_value());
  const std::vector<int> depth = depth_to_sink(graph);
  std::vector<double> path(parts.size(), 0);
  Figures f;
  for (auto s = order->rbegin(); s != order->rend(); ++s) {
    const Part& part = parts[*s];
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

double iteration_of(const Problem& p, double bottleneck, double path) {
  return (p.micro_batches - 1) * bottleneck + path;
}

double least_bottleneck(const Problem& p) {
  const Stock stock(p);
  double work = 0, longest = 0;
  for (const Sums& layer : p.amounts) {
    double least = kInfinity;
    for (int c = 0; c < p.choices(); ++c) least = std::min(least, layer.seconds[c]);
    work += stock.least_work(p, layer);
    longest = std::max(longest, least);
  }
  return std::max(work / stock.worth(stock.all()), longest);
}

}  // namespace stagecraft::graph
