#include "sim/plan/graph/coarsen.hpp"

#include <algorithm>
#include <utility>

#include "sim/core/numbers.hpp"

namespace stagecraft::graph {
namespace {

/// The one block that follows, where nothing else leads there; -1: none.
int follower(const Digraph& g, int block) {
  if (g.next[block].size() != 1) return -1;
  const int next = g.next[block].front();
  return g.previous[next].size() == 1 ? next : -1;
}

/// Which blocks take in the one behind them in this round.
std::vector<bool> to_fuse(const Problem& p) {
  const auto together = [&](int block, int next) { return p.amounts[block].seconds[0] + p.amounts[next].seconds[0]; };
  double least = kInfinity;
  for (int block = 0; block < p.size(); ++block)
    if (const int next = follower(p.layers, block); next >= 0) least = std::min(least, together(block, next));
  std::vector<bool> fuse(p.size(), false), taken(p.size(), false);
  for (int block = 0; block < p.size(); ++block) {
    const int next = follower(p.layers, block);
    if (next < 0 || taken[block] || together(block, next) > least * (1 + 1e-9)) continue;
    fuse[block] = taken[next] = true;
  }
  return fuse;
}

Coarse fused(const Coarse& fine, const std::vector<bool>& fuse) {
  const Problem& p = fine.problem;
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

Coarse fuse_chains(const Problem& p, int blocks) {
  Coarse coarse{p, {}};
  for (int layer = 0; layer < p.size(); ++layer) coarse.layers.push_back({layer});
  while (coarse.problem.size() > blocks) {
    const std::vector<bool> fuse = to_fuse(coarse.problem);
    if (std::none_of(fuse.begin(), fuse.end(), [](bool f) { return f; })) break;
    coarse = fused(coarse, fuse);
  }
  return coarse;
}

std::vector<Part> in_layers(const Coarse& coarse, std::vector<Part> parts) {
  for (Part& part : parts) {
    const std::vector<int> blocks = std::exchange(part.layers, {});
    for (const int block : blocks)
      part.layers.insert(part.layers.end(), coarse.layers[block].begin(), coarse.layers[block].end());
    std::sort(part.layers.begin(), part.layers.end());
  }
  return parts;
}

}  // namespace stagecraft::graph
