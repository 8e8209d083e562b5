#pragma once

#include <algorithm>

#include "sim/core/random.hpp"
#include "tests/support/nets.hpp"

namespace stagecraft::test {

/// A random net of dense layers in mixed precision, divided into stages, with a schedule.
struct MixedProgram {
  ModelGraph model;
  Plan plan;
  Training training;
  const char* schedule = "1f1b";
};

/// `whole`: whole numbers of a few bits, whose sums are exact in 32 bits in any order, so that every result that is
/// rounded to 16 bits is the same one wherever it is computed.
inline MixedProgram mixed_program(Rng& rng, bool whole) {
  MixedProgram p;
  const int stages = rng.integer(2, whole ? 3 : 4);
  const int widest = !whole ? 19 : stages == 2 ? 8 : 4;  // Sums of whole numbers stay below 2^24.
  std::vector<int> widths(static_cast<std::size_t>(stages) + 1);
  for (int& width : widths) width = rng.integer(1, widest);
  constexpr OperationKind kBends[] = {OperationKind::Tanh, OperationKind::Gelu, OperationKind::Relu};
  const OperationKind bend = whole ? OperationKind::Relu : kBends[rng.integer(0, 2)];
  p.model = dense_net(widths, bend, whole ? OperationKind::SumSquare : OperationKind::MeanSquare, 2);
  if (!whole && rng.integer(0, 1) == 1)  // A norm before each activation but the first.
    for (std::size_t l = 2; l + 2 < p.model.layers.size(); ++l) {
      Layer& layer = p.model.layers[LayerId{static_cast<int>(l)}];
      const int columns = layer.operations.front().columns;
      layer.operations.insert(layer.operations.begin() + 1,
                              {.kind = OperationKind::LayerNorm, .inputs = {0}, .columns = columns});
      layer.operations.back().inputs = {1};
      layer.parameters = 0;
      for (const Operation& op : layer.operations) layer.parameters += op.parameters();
    }
  p.plan = stage_each(p.model, rng.integer(2, 5), rng.integer(1, 3));
  constexpr const char* kSchedules[] = {"gpipe", "1f1b", "graph", "zb-h1"};
  p.schedule = kSchedules[rng.integer(0, 3)];
  constexpr OptimizerKind kOptimizers[] = {OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::Adam};
  p.training = whole ? training_of(OptimizerKind::Integer, 1, "integers")
                     : training_of(kOptimizers[rng.integer(0, 2)], 0.01, "teacher");
  p.training.seed = static_cast<std::uint64_t>(rng.integer(1, 1000));
  return p;
}

}  // namespace stagecraft::test
