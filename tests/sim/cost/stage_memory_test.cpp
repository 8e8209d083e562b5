// Memory of a stage, computed by hand from the units of its layers and the number of each that a device keeps.

#include "sim/cost/stage_memory.hpp"

#include <doctest/doctest.h>

#include "sim/cost/stage_cost.hpp"
#include "tests/support/clusters.hpp"

namespace stagecraft::stage_memory_test {
namespace {

/// A chain of three layers with 100 parameters each, in half precision with Adam: 2 + 2 + 12 bytes each. Per sample
/// they keep 50, 80 and 110 bytes, of which 30, 40 and 60 are the inside of an attention, and they send 8 bytes on.
ModelGraph chain() {
  ModelGraph model;
  model.precision = {.weight = 2, .gradient = 2, .optimizer = 12};
  for (int l = 0; l < 3; ++l) {
    Layer layer;
    layer.name = std::string(1, static_cast<char>('a' + l));
    if (l > 0) layer.inputs = {LayerId{l - 1}};
    layer.parameters = 100;
    layer.output = Bytes{8};
    layer.stash = Bytes{50.0 + 30 * l};
    layer.core.stash = Bytes{l == 0 ? 30.0 : 20.0 * (l + 1)};
    layer.times = LayerTimes{{1}, {1}, {1}};
    model.layers.push_back(layer);
  }
  return model;
}

MemoryUnits units_of(const std::vector<LayerId>& layers, Recomputation recomputation, double samples) {
  const ModelGraph model = chain();
  const Cluster cluster = test::bare_cluster(1);
  StageShape shape;
  shape.layers = layers;
  shape.recomputation = recomputation;
  return stage_cost(CostTable(model, cluster), shape, DeviceTypeId{0}, whole_samples(samples)).memory;
}

}  // namespace

TEST_CASE("a stage keeps weights, gradients, optimizer state and every stash in flight") {
  const MemoryUnits units = units_of({LayerId{1}, LayerId{2}}, Recomputation::None, 4);
  CHECK(units.weights.value == 200 * 2);
  CHECK(units.gradients.value == 200 * 2);
  CHECK(units.optimizer.value == 200 * 12);
  CHECK(units.stash.value == 4 * (80 + 110));
  const StageMemory memory = stage_memory(units, 3);
  CHECK(memory.resident().value == 200 * 16);
  CHECK(memory.stash.value == 3 * 4 * (80 + 110));
  CHECK(memory.recompute_peak.value == 0);
  CHECK(memory.total().value == 200 * 16 + 3 * 4 * (80 + 110));
}

TEST_CASE("full recomputation keeps the inputs of all micro-batches in flight, and the rest of one") {
  const MemoryUnits units = units_of({LayerId{1}, LayerId{2}}, Recomputation::Full, 4);
  CHECK(units.stash.value == 4 * 8);
  CHECK(units.whole_stash().value == 4 * (80 + 110));
  CHECK(stage_memory(units, 3).total().value == 200 * 16 + 3 * 4 * 8 + (4 * (80 + 110) - 4 * 8));
}

TEST_CASE("selective recomputation keeps stashes without attention, and the inside of the largest one") {
  const MemoryUnits units = units_of({LayerId{1}, LayerId{2}}, Recomputation::Selective, 4);
  CHECK(units.stash.value == 4 * (40 + 50));
  CHECK(units.recompute_peak.value == 4 * 60);
  CHECK(stage_memory(units, 3).total().value == 200 * 16 + 3 * 4 * (40 + 50) + 4 * 60);
}

TEST_CASE("versions, gradient copies and momenta multiply their memory; inference keeps weights alone") {
  const MemoryUnits units{
      .weights = {10}, .gradients = {20}, .optimizer = {300}, .stash = {4000}, .recompute_peak = {5}};
  const StageMemory memory = stage_memory(units, {.in_flight = 2, .versions = 3, .gradients = 4, .momenta = 1});
  CHECK(memory.weights.value == 30);
  CHECK(memory.gradients.value == 80);
  CHECK(memory.optimizer.value == 310);
  CHECK(memory.total().value == 30 + 80 + 310 + 8000 + 5);
  CHECK(stage_memory(units, {.gradients = 0, .optimizers = 0}).total().value == 10);
}

TEST_CASE("nothing is recomputed where no micro-batch is in flight") {
  const MemoryUnits units{.stash = {1}, .recompute_stash = {2}, .recompute_peak = {3}};
  CHECK(stage_memory(units, 0).total().value == 0);
  CHECK(stage_memory(units, 1).total().value == 6);
}

TEST_CASE("layers add up, but of their recomputed activations only the largest counts") {
  MemoryUnits stage;
  for (const LayerId layer : {LayerId{0}, LayerId{1}, LayerId{2}})
    stage += layer_memory(chain(), layer, Recomputation::Selective, whole_samples(1));
  CHECK(stage.weights.value == 600);
  CHECK(stage.stash.value == 20 + 40 + 50);
  CHECK(stage.recompute_peak.value == 60);
}

TEST_CASE("a layer that recomputes all keeps its inputs, or its stash if that is smaller") {
  ModelGraph model = chain();
  CHECK(layer_memory(model, LayerId{1}, Recomputation::Full, whole_samples(2)).stash.value == 16);
  CHECK(layer_memory(model, LayerId{1}, Recomputation::Full, whole_samples(2)).recompute_stash.value == 2 * 80 - 16);
  model.layers[LayerId{0}].output = Bytes{1000};
  CHECK(layer_memory(model, LayerId{1}, Recomputation::Full, whole_samples(2)).stash.value == 160);
  CHECK(layer_memory(model, LayerId{1}, Recomputation::Full, whole_samples(2)).recompute_stash.value == 0);
}

}  // namespace stagecraft::stage_memory_test
