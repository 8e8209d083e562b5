#pragma once

#include "sim/core/dag.hpp"
#include "sim/core/random.hpp"
#include "sim/cost/stage_memory.hpp"

namespace stagecraft::test {

inline Digraph random_graph(Rng& rng, int layers, bool chain) {
  Digraph graph(layers);
  for (int l = 1; l < layers; ++l) {
    graph.add(chain ? l - 1 : rng.integer(0, l - 1), l);
    if (!chain && rng.integer(0, 2) == 0) graph.add(rng.integer(0, l - 1), l);
  }
  return graph;
}

inline MemoryUnits random_units(Rng& rng) {
  const double stash = rng.uniform(0, 2), weights = rng.uniform(0, 2);
  return {.weights = {weights}, .stash = {stash}};
}

}  // namespace stagecraft::test
