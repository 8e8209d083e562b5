#include "sim/cost/cost_table.hpp"

#include <doctest/doctest.h>

#include "tests/support/checked.hpp"
#include "tests/support/clusters.hpp"

namespace stagecraft::cost_table_test {
namespace {

Cluster one_type() {
  Cluster cluster = test::bare_cluster(1);
  DeviceType& type = cluster.types.front();
  type.peak.value = 100;
  type.efficiency = 0.5;
  type.memory_bandwidth.value = 10;
  type.launch.value = 1;
  type.speed = 2;
  return cluster;
}

ModelGraph two_layers() {
  ModelGraph model;
  model.layers.resize(2);
  model.layers[LayerId{0}].name = "in";
  model.layers[LayerId{0}].output.value = 20;
  Layer& layer = model.layers[LayerId{1}];
  layer.name = "work";
  layer.inputs = {LayerId{0}};
  layer.forward.value = 1000;
  layer.input_gradient.value = 10;
  layer.weight_gradient.value = 2000;
  layer.parameters = 5;
  layer.output.value = 40;
  return model;
}

}  // namespace

TEST_CASE("a pass takes the slower of arithmetic and memory, and the launch") {
  const Cluster cluster = one_type();
  const ModelGraph model = two_layers();
  const CostTable costs(model, cluster);
  const LayerCost cost = costs.at(LayerId{1}, DeviceTypeId{0}, whole_samples(2));
  CHECK(cost.forward.value == doctest::Approx(2 * 1000 / 50.0 + 1));
  CHECK(cost.input_gradient.value == doctest::Approx((5 * 4 + 2 * 60) / 10.0 + 1));
  CHECK(cost.weight_gradient.value == doctest::Approx(2 * 2000 / 50.0 + 1));
  CHECK(cost.backward().value == doctest::Approx(cost.input_gradient.value + cost.weight_gradient.value));
}

TEST_CASE("inputs, zero samples and missing gradients cost nothing") {
  const Cluster cluster = one_type();
  ModelGraph model = two_layers();
  const LayerCost input = CostTable(model, cluster).at(LayerId{0}, DeviceTypeId{0}, whole_samples(4));
  CHECK(input.forward.value == 0);
  CHECK(input.backward().value == 0);
  CHECK(CostTable(model, cluster).at(LayerId{1}, DeviceTypeId{0}, whole_samples(0)).forward.value == 0);

  Layer& layer = model.layers[LayerId{1}];
  layer.forward = layer.input_gradient = {};
  layer.parameters = 1e6;  // A look-up reads rows, not the table, and its input needs no gradient.
  const LayerCost look_up = CostTable(model, cluster).at(LayerId{1}, DeviceTypeId{0}, whole_samples(1));
  CHECK(look_up.forward.value == doctest::Approx(60 / 10.0 + 1));
  CHECK(look_up.input_gradient.value == 0);
}

TEST_CASE("tied weights are read where they are used") {
  const Cluster cluster = one_type();
  ModelGraph model = two_layers();
  model.layers[LayerId{0}].tie = model.layers[LayerId{1}].tie = "w";
  model.layers[LayerId{0}].parameters = 1e6;
  model.layers[LayerId{1}].parameters = 0;
  CHECK(CostTable(model, cluster).at(LayerId{1}, DeviceTypeId{0}, whole_samples(1)).forward.value ==
        doctest::Approx((4e6 + 60) / 10.0 + 1));
}

TEST_CASE("given times scale with samples and speed") {
  const Cluster cluster = one_type();
  ModelGraph model = two_layers();
  model.layers[LayerId{1}].times = LayerTimes{{1}, {2}, {4}};
  const LayerCost cost = CostTable(model, cluster).at(LayerId{1}, DeviceTypeId{0}, whole_samples(3));
  CHECK(cost.forward.value == 1.5);
  CHECK(cost.input_gradient.value == 3);
  CHECK(cost.weight_gradient.value == 6);
}

TEST_CASE("times of a layer for a device type hold whatever the speed of the type; other types cannot run the layer") {
  Cluster cluster = one_type();
  cluster.types.front().name = "board";
  cluster.types.push_back(cluster.types.front());
  cluster.types.back().name = "phone";
  ModelGraph model = two_layers();
  model.layers[LayerId{1}].times_on["board"] = {{1}, {2}, {4}};
  const CostTable costs(model, cluster);
  CHECK(costs.at(LayerId{1}, DeviceTypeId{0}, whole_samples(3)).forward.value == 3);
  CHECK(costs.at(LayerId{1}, DeviceTypeId{0}, whole_samples(3)).backward().value == 18);
  CHECK(test::input_error_of([&] { costs.at(LayerId{1}, DeviceTypeId{1}, whole_samples(3)); }) ==
        "0: : layer 'work' has no times for devices of the type 'phone' [it has them for board]\n");
}

TEST_CASE("an update is memory traffic: w, g and o read, w and o written") {
  const Cluster cluster = one_type();
  const ModelGraph model = two_layers();
  CHECK(CostTable(model, cluster).update(10, DeviceTypeId{0}).value ==
        doctest::Approx(10 * (4 + 2 * 4 + 2 * 8) / 10.0));
}

TEST_CASE("touching the weights takes their bytes over the memory bandwidth, or nothing if it is unknown") {
  const ModelGraph model = two_layers();
  Cluster cluster = one_type();
  CHECK(CostTable(model, cluster).touch(5, DeviceTypeId{0}).value == 5 * model.precision.weight / 10);
  cluster.types.front().memory_bandwidth.value = 0;
  CHECK(CostTable(model, cluster).touch(5, DeviceTypeId{0}).value == 0);
}

TEST_CASE("equal operations cost the same only where the same gradients are needed") {
  const auto linear = [](const std::string& name, int input) {
    Layer layer{.name = name, .inputs = {LayerId{input}}};
    layer.operations = {{.kind = OperationKind::Linear, .inputs = {-1}, .rows = 1, .columns = 8, .inner = 8}};
    return layer;
  };
  ModelGraph model;
  model.layers.push_back({.name = "data"});
  model.layers[LayerId{0}].operations = {{.kind = OperationKind::Input, .columns = 8}};
  for (int i = 0; i < 3; ++i) model.layers.push_back(linear("l" + std::to_string(i), i));
  Cluster cluster;
  cluster.types.push_back({.name = "gpu"});
  CostRules rules = *rules_without_software(cluster);
  const auto alike = [&](int layer, const SoftwareStack& software) {
    rules.software = software;
    const auto shared = [](auto value) { return std::make_shared<const decltype(value)>(std::move(value)); };
    return CostTable(shared(model), shared(cluster), {}, shared(rules)).alike(LayerId{layer});
  };
  CHECK(alike(1, software_stack("plain")) == LayerId{1});
  CHECK(alike(2, software_stack("plain")) == LayerId{2});  // The one before it reads data, which needs no gradient.
  CHECK(alike(3, software_stack("plain")) == LayerId{2});
  CHECK(alike(3, no_software_stack()) == LayerId{3});
}

}  // namespace stagecraft::cost_table_test
