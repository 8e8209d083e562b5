#pragma once

#include <vector>

#include "sim/core/random.hpp"
#include "sim/planners/chain_partition/pipedream.hpp"

namespace stagecraft::test {

inline std::vector<chain_partition::LayerAmounts> random_amounts(Rng& rng, int layers) {
  std::vector<chain_partition::LayerAmounts> amounts;
  for (int l = 0; l < layers; ++l)
    amounts.push_back({rng.uniform(0, 1), rng.integer(0, 3) * 1.0, rng.integer(0, 2) * rng.uniform(0, 2)});
  return amounts;
}

inline chain_partition::PipeDreamOptions random_options(Rng& rng, int machines) {
  chain_partition::PipeDreamOptions options;
  options.levels = {{machines, rng.uniform(1, 30)}};
  options.most_replicas = rng.integer(1, machines);
  options.formula = rng.integer(0, 1) ? chain_partition::Formula::Paper : chain_partition::Formula::Released;
  options.transfers = rng.integer(0, 2) / 2.0;
  options.straight = rng.integer(0, 4) == 0;
  options.fewer = rng.integer(0, 2) == 0;
  if (rng.integer(0, 1)) options.memory = rng.uniform(1, 15);
  return options;
}

}  // namespace stagecraft::test
