// Fuses chains of a graph of layers into blocks, so that searches on large models stay short, and finds exchangeable
// chains, both for the planner `graph-exact`.

#include "sim/planners/graph/coarsen.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"

namespace stagecraft::graph {
namespace {

/// The only block that reads this one, if it reads no other block; else -1.
int follower(const Digraph& g, int block) {
  if (g.next[block].size() != 1) return -1;
  const int next = g.next[block].front();
  return g.previous[next].size() == 1 ? next : -1;
}

/// Marks the blocks that absorb the next block in this round.
std::vector<bool> to_fuse(const GraphProblem& p) {
  const auto together = [&](int block, int next) { return p.amounts[block].seconds[0] + p.amounts[next].seconds[0]; };
  double fastest = kInfinity;
  for (int block = 0; block < p.size(); ++block)
    if (const int next = follower(p.layers, block); next >= 0) fastest = std::min(fastest, together(block, next));
  std::vector<bool> fuse(p.size(), false), taken(p.size(), false);
  for (int block = 0; block < p.size(); ++block) {
    const int next = follower(p.layers, block);
    if (next < 0 || taken[block] || together(block, next) > fastest * (1 + 1e-9)) continue;
    fuse[block] = taken[next] = true;
  }
  return fuse;
}

Coarse fused(const Coarse& fine, const std::vector<bool>& fuse) {
  const GraphProblem& p = fine.problem;
  std::vector<int> block_of(p.size(), -1);
  Coarse coarse{p, {}};
  coarse.problem.amounts.clear(), coarse.problem.output.clear();
  for (int old = 0; old < p.size(); ++old) {
    if (block_of[old] >= 0) continue;
    block_of[old] = static_cast<int>(coarse.layers.size());
    coarse.layers.push_back(fine.layers[old]);
    coarse.problem.amounts.push_back(p.amounts[old]);
    coarse.problem.output.push_back(p.output[old]);
    if (!fuse[old]) continue;
    const int next = follower(p.layers, old);
    block_of[next] = block_of[old];
    coarse.layers.back().insert(coarse.layers.back().end(), fine.layers[next].begin(), fine.layers[next].end());
    add(coarse.problem.amounts.back(), p.amounts[next], p.choices());
    coarse.problem.output.back() = p.output[next];
  }
  coarse.problem.layers = Digraph(static_cast<int>(coarse.layers.size()));
  for (int old = 0; old < p.size(); ++old)
    for (const int reader : p.layers.next[old])
      if (block_of[old] != block_of[reader]) coarse.problem.layers.add(block_of[old], block_of[reader]);
  return coarse;
}

}  // namespace

Coarse fuse_chains(const GraphProblem& p, int blocks) {
  Coarse coarse{p, {}};
  for (int layer = 0; layer < p.size(); ++layer) coarse.layers.push_back({layer});
  while (coarse.problem.size() > blocks) {
    stop_point();
    const std::vector<bool> fuse = to_fuse(coarse.problem);
    if (std::none_of(fuse.begin(), fuse.end(), [](bool f) { return f; })) break;
    coarse = fused(coarse, fuse);
  }
  return coarse;
}

std::vector<GraphStage> in_layers(const Coarse& coarse, std::vector<GraphStage> parts) {
  for (GraphStage& part : parts) {
    const std::vector<int> blocks = std::exchange(part.layers, {});
    for (const int block : blocks)
      part.layers.insert(part.layers.end(), coarse.layers[block].begin(), coarse.layers[block].end());
    std::sort(part.layers.begin(), part.layers.end());
  }
  return parts;
}

namespace {

/// The only other layer that a layer goes with in a chain; -1: none.
int only_next(const Digraph& g, int layer) {
  if (g.next[layer].size() != 1) return -1;
  const int next = g.next[layer].front();
  return g.previous[next].size() == 1 ? next : -1;
}

/// Longest chains whose inner layers have one neighbor on each side, from the last layer to the first.
TwinChains longest_chains(const Digraph& g) {
  TwinChains chains;
  for (int last = 0; last < g.size(); ++last) {
    if (only_next(g, last) >= 0) continue;
    std::vector<int>& chain = chains.emplace_back(1, last);
    while (g.previous[chain.back()].size() == 1 && only_next(g, g.previous[chain.back()].front()) >= 0)
      chain.push_back(g.previous[chain.back()].front());
  }
  return chains;
}

std::vector<int> sorted(std::vector<int> layers) {
  std::sort(layers.begin(), layers.end());
  return layers;
}

}  // namespace

std::vector<TwinChains> twin_chains(const GraphProblem& p) {
  // What has to be equal: who reads the last and feeds the first layer, and what each layer costs.
  using Key = std::pair<std::vector<int>, std::vector<double>>;
  std::map<Key, TwinChains> alike;
  for (const std::vector<int>& chain : longest_chains(p.layers)) {
    Key key{sorted(p.layers.next[chain.front()]), {}};
    key.first.push_back(-1);
    for (const int input : sorted(p.layers.previous[chain.back()])) key.first.push_back(input);
    for (const int layer : chain) {
      const Sums& sums = p.amounts[layer];
      key.second.insert(key.second.end(), {sums.update, sums.weights, sums.gradients, sums.optimizer, p.output[layer]});
      key.second.insert(key.second.end(), sums.seconds.begin(), sums.seconds.end());
      key.second.insert(key.second.end(), sums.stash.begin(), sums.stash.end());
    }
    alike[key].push_back(chain);
  }
  std::vector<TwinChains> groups;
  for (auto& [key, chains] : alike)
    if (chains.size() > 1) groups.push_back(std::move(chains));
  return groups;
}

}  // namespace stagecraft::graph
