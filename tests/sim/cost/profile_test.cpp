#include <doctest/doctest.h>

#include "sim/cost/cost_table.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/nets.hpp"

using namespace stagecraft;

namespace {

Profile two_sizes() {
  Profile p;
  p.device = "thread";
  p.layers = {{"fp64: linear 1x8 from 6; tanh 1x8", 4, Seconds{4e-6}, Seconds{6e-6}, Seconds{8e-6}, 0.1},
              {"fp64: linear 1x8 from 6; tanh 1x8", 8, Seconds{6e-6}, Seconds{10e-6}, Seconds{14e-6}, 0.2}};
  p.updates = {{100, Seconds{1e-6}, Seconds{4e-7}}, {200, Seconds{3e-6}, Seconds{8e-7}}};
  p.operation = Seconds{5e-7};
  p.latency = Seconds{2e-6};
  p.bandwidth = Bandwidth{8e9};
  return p;
}

}  // namespace

TEST_CASE("on the line through the two nearest numbers of samples, below all of them in proportion") {
  const Profile p = two_sizes();
  const std::string layer = p.layers.front().layer;
  CHECK(p.find(layer, 4)->forward.value == doctest::Approx(4e-6));
  CHECK(p.find(layer, 6)->forward.value == doctest::Approx(5e-6));
  CHECK(p.find(layer, 6)->weight_gradient.value == doctest::Approx(11e-6));
  CHECK(p.find(layer, 2)->forward.value == doctest::Approx(2e-6));
  CHECK(p.find(layer, 16)->input_gradient.value == doctest::Approx(18e-6));
  CHECK_FALSE(p.find("fp64: linear 1x8 from 7", 4));
  CHECK_FALSE(p.find("", 4));
  CHECK(p.update(150)->value == doctest::Approx(2e-6));
  CHECK(p.update(50)->value == doctest::Approx(5e-7));
  CHECK(p.update(400)->value == doctest::Approx(7e-6));
  CHECK(p.predict(150)->value == doctest::Approx(6e-7));
  Profile one = p;
  one.layers.pop_back();
  CHECK(one.find(layer, 16)->forward.value == doctest::Approx(16e-6));
}

TEST_CASE("a layer is known by its operations and the width of its numbers") {
  const ModelGraph model = test::deep_net(2, 6, 8, 3),
                   narrow = test::deep_net(2, 6, 8, 3, OperationKind::Tanh, OperationKind::MeanSquare, 4);
  CHECK(signature(model.layers[1], model.precision) == "fp64: linear 1x8 from 6; tanh 1x8");
  CHECK(signature(narrow.layers[1], narrow.precision) == "fp32: linear 1x8 from 6; tanh 1x8");
  CHECK(signature(Layer{}, model.precision).empty());
}

TEST_CASE("a profile reads back as it was written") {
  const Profile p = two_sizes();
  Profile named = p;
  named.title = "a title: with a colon";
  named.machine = "a machine, 2 cores";
  named.date = "2026-01-02";
  named.commit = "abc";
  named.backend = "cpu";
  named.precision = "fp64";
  named.optimizer = "adam";
  const Profile back = read_profile(test::checked(to_yaml(named), profile_fields()));
  CHECK(to_yaml(back) == to_yaml(named));
  CHECK(back.layers.size() == 2);
  CHECK(back.find(p.layers.front().layer, 6)->forward.value == doctest::Approx(5e-6));
  CHECK(back.bandwidth.value == doctest::Approx(8e9));
  CHECK(back.title == named.title);
}

TEST_CASE("the table takes what was measured on its type of device, and reckons the rest") {
  const ModelGraph model = test::deep_net(2, 6, 8, 3);
  Cluster cluster;
  cluster.types = {{.name = "thread", .peak = {1e9}}, {.name = "other", .peak = {1e9}}};
  cluster.devices = {{"a", 0, "a"}, {"b", 1, "b"}};
  const Profile profile = two_sizes();
  const CostTable costs(model, cluster, &profile), reckoned(model, cluster);
  CHECK(costs.at(LayerId{1}, 0, 4).forward.value == doctest::Approx(4e-6));
  CHECK(costs.at(LayerId{1}, 0, 4).input_gradient.value == 0);  // It reads data, whose gradient nobody needs.
  CHECK(costs.at(LayerId{1}, 1, 4).forward == reckoned.at(LayerId{1}, 1, 4).forward);
  CHECK(costs.at(LayerId{2}, 0, 4).forward == reckoned.at(LayerId{2}, 0, 4).forward);
  CHECK(costs.update(150, 0).value == doctest::Approx(2e-6));
  CHECK(costs.update(150, 1) == reckoned.update(150, 1));
  CHECK(costs.operation(0).value == doctest::Approx(5e-7));
  CHECK(costs.touch(100, 0).value == doctest::Approx(1e-7));  // 4e-7 for weights read and written and two moments.
  CHECK(costs.operation(1).value == 0);
}
