#include "sim/plan/graph/twin_chains.hpp"

#include <algorithm>
#include <map>

namespace stagecraft::graph {
namespace {

/// The only other layer that a layer goes with in a chain; -1: none.
int only_next(const Digraph& g, int layer) {
  if (g.next[layer].size() != 1) return -1;
  const int next = g.next[layer].front();
  return g.previous[next].size() == 1 ? next : -1;
}

/// Longest chains whose inner layers have one neighbour on each side, from the last layer to the first.
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

std::vector<TwinChains> twin_chains(const Problem& p) {
  // What has to be equal: who reads the last and feeds the first layer, and what each layer costs.
  using Key = std::pair<std::vector<int>, std::vector<double>>;
  std::map<Key, TwinChains> alike;
  for (const std::vector<int>& chain : longest_chains(p.layers)) {
    Key key{sorted(p.layers.next[chain.front()]), {}};
    key.first.push_back(-1);
    for (const int input : sorted(p.layers.previous[chain.back()])) key.first.push_back(input);
    for (const int layer : chain) {
      const Sums& sums = p.amounts[layer];
      key.second.insert(key.second.end(), {sums.update, sums.kept, sums.gradients, p.output[layer]});
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
