#include <doctest/doctest.h>

#include "sim/cost/cost_table.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/nets.hpp"

namespace stagecraft::profile_test {
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

TEST_CASE("times are interpolated between measured sizes, and proportional below the smallest") {
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

TEST_CASE("two measurements of one size are refused") {
  Profile layers = two_sizes(), updates = two_sizes();
  layers.layers[1].samples = 4;
  updates.updates[1].parameters = 100;
  for (Profile* p : {&layers, &updates}) {
    p->machine = p->date = p->commit = p->backend = "some";
    p->precision = "fp64", p->optimizer = "adam";
    const config::Value tree = test::checked(to_yaml(*p), profile_fields());
    CHECK_THROWS_WITH_AS(read_profile(tree), doctest::Contains("twice"), InputError);
  }
}

TEST_CASE("a layer without words is refused, and any words are read as they were written") {
  Profile p = two_sizes();
  p.machine = p.date = p.commit = p.backend = "some";
  p.precision = "of: both", p.optimizer = "null";
  p.layers[0].layer = "a \"b\" \\";
  const Profile again = read_profile(test::checked(to_yaml(p), profile_fields()));
  CHECK(again.layers[0].layer == p.layers[0].layer);
  CHECK(again.precision == p.precision);
  CHECK(again.optimizer == p.optimizer);
  p.layers[0].layer = "";
  const config::Value nameless = test::checked(to_yaml(p), profile_fields());
  CHECK_THROWS_WITH_AS(read_profile(nameless), doctest::Contains("without its operations"), InputError);
}

TEST_CASE("a layer is known by its operations and the width of its numbers") {
  const ModelGraph model = test::deep_net(2, 6, 8, 3),
                   narrow = test::deep_net(2, 6, 8, 3, OperationKind::Tanh, OperationKind::MeanSquare, 4);
  CHECK(signature(model.layers[LayerId{1}].operations, model.precision) == "fp64: linear 1x8 from 6; tanh 1x8");
  CHECK(signature(narrow.layers[LayerId{1}].operations, narrow.precision) == "fp32: linear 1x8 from 6; tanh 1x8");
  CHECK(signature({}, model.precision).empty());
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

TEST_CASE("the cost table takes what was measured on its device type and computes the rest") {
  const ModelGraph model = test::deep_net(2, 6, 8, 3);
  Cluster cluster;
  cluster.types = {{.name = "thread", .peak = {1e9}}, {.name = "other", .peak = {1e9}}};
  cluster.devices = {{"a", DeviceTypeId{0}, "a"}, {"b", DeviceTypeId{1}, "b"}};
  const Profile profile = two_sizes();
  const CostTable costs(model, cluster, &profile), computed(model, cluster);
  CHECK(costs.at(LayerId{1}, DeviceTypeId{0}, whole_samples(4)).forward.value == doctest::Approx(4e-6));
  CHECK(costs.at(LayerId{1}, DeviceTypeId{0}, whole_samples(4)).input_gradient.value ==
        0);  // It reads the input data, whose gradient is not needed.
  CHECK(costs.at(LayerId{1}, DeviceTypeId{1}, whole_samples(4)).forward ==
        computed.at(LayerId{1}, DeviceTypeId{1}, whole_samples(4)).forward);
  CHECK(costs.at(LayerId{2}, DeviceTypeId{0}, whole_samples(4)).forward ==
        computed.at(LayerId{2}, DeviceTypeId{0}, whole_samples(4)).forward);
  CHECK(costs.update(150, DeviceTypeId{0}).value == doctest::Approx(2e-6));
  CHECK(costs.update(150, DeviceTypeId{1}) == computed.update(150, DeviceTypeId{1}));
  CHECK(costs.operation(DeviceTypeId{0}).value == doctest::Approx(5e-7));
  CHECK(costs.touch(100, DeviceTypeId{0}).value ==
        doctest::Approx(1e-7));  // 4e-7 for weights read and written and two moments.
  CHECK(costs.operation(DeviceTypeId{1}).value == 0);
}

namespace {

Profile of_group() {
  Profile p = two_sizes();
  p.machine = p.date = p.commit = p.backend = p.precision = p.optimizer = "some";
  p.layers.push_back(p.layers.front());
  p.layers.back().group = "tensor 2, sequence";
  p.layers.back().forward = Seconds{7e-6};
  p.collectives = {{CollectiveKind::AllReduce, CollectiveUse::Ops, 2, Bytes{3000}, Seconds{5e-6}},
                   {CollectiveKind::AllReduce, CollectiveUse::Ops, 2, Bytes{1000}, Seconds{3e-6}},
                   {CollectiveKind::AllReduce, CollectiveUse::Parameters, 2, Bytes{1000}, Seconds{9e-6}},
                   {CollectiveKind::AllGather, CollectiveUse::Ops, 4, Bytes{1000}, Seconds{8e-6}}};
  return p;
}

}  // namespace

TEST_CASE("a layer that a group divides is another one than the whole layer") {
  const Profile p = of_group();
  const std::string layer = p.layers.front().layer;
  CHECK(p.find(layer, 4)->forward.value == doctest::Approx(4e-6));
  CHECK(p.find(layer, 4, "tensor 2, sequence")->forward.value == doctest::Approx(7e-6));
  CHECK_FALSE(p.find(layer, 4, "tensor 2"));
  CHECK(group_text({}, ContextExchange::Ring).empty());
  CHECK(group_text({.replicas = 4}, ContextExchange::Ring).empty());
  CHECK(group_text({.tensor = 2, .sequence = true}, ContextExchange::Ring) == "tensor 2, sequence");
  CHECK(group_text({.context = 4, .tensor = 2, .expert = 8, .expert_tensor = 2}, ContextExchange::AllToAll) ==
        "tensor 2, context 4 a2a, expert 8, expert_tensor 2");
}

TEST_CASE("collectives are interpolated between measured sizes, and small ones take as long as the smallest") {
  const Profile p = of_group();
  const auto time = [&](double bytes) {
    return p.collective(CollectiveKind::AllReduce, CollectiveUse::Ops, 2, Bytes{bytes})->value;
  };
  CHECK(time(1000) == doctest::Approx(3e-6));
  CHECK(time(2000) == doctest::Approx(4e-6));
  CHECK(time(5000) == doctest::Approx(7e-6));
  CHECK(time(1) == doctest::Approx(3e-6));
  CHECK(p.collective(CollectiveKind::AllReduce, CollectiveUse::Parameters, 2, Bytes{1000})->value ==
        doctest::Approx(9e-6));
  CHECK_FALSE(p.collective(CollectiveKind::AllReduce, CollectiveUse::Ops, 4, Bytes{1000}));
  CHECK_FALSE(p.collective(CollectiveKind::AllToAll, CollectiveUse::Ops, 2, Bytes{1000}));
}

TEST_CASE("groups and collectives of a profile read back, and none may stand there twice") {
  const Profile p = of_group();
  const Profile back = read_profile(test::checked(to_yaml(p), profile_fields()));
  CHECK(to_yaml(back) == to_yaml(p));
  REQUIRE(back.collectives.size() == 4);
  CHECK(back.collectives[2].use == CollectiveUse::Parameters);
  CHECK(back.collectives[3].kind == CollectiveKind::AllGather);
  CHECK(back.layers.back().group == "tensor 2, sequence");
  Profile twice = p;
  twice.collectives[1].bytes = Bytes{3000};
  CHECK_THROWS_WITH_AS(read_profile(test::checked(to_yaml(twice), profile_fields())),
                       doctest::Contains("a collective of this kind and size stands here twice"), InputError);
}

namespace {

/// Two parts of a GPU whose memory moves 8 GB/s in all, and 6 GB/s for one part alone.
Cluster two_parts(const std::string& type) {
  Cluster cluster = test::bare_cluster(2);
  cluster.types[DeviceTypeId{0}].name = type;
  cluster.types[DeviceTypeId{0}].memory_bandwidth = Bandwidth{6e9};
  test::connect(cluster, {0, 1}, 4e9, 0, Duplex::Half);
  for (Device& d : cluster.devices) d.memory = LinkId{0};
  return cluster;
}

Profile of_parts(double slowdown) {
  Profile p = two_sizes();
  p.gpu = MeasuredGpu{132, 8, 2, 64, Bandwidth{8e9}, Bandwidth{6e9}};
  for (MeasuredLayer& l : p.layers) l.slowdown = slowdown;
  return p;
}

}  // namespace

TEST_CASE("a profile of parts of a GPU reads back too") {
  Profile p = of_parts(1.25);
  p.machine = p.date = p.commit = p.backend = p.precision = p.optimizer = "some";
  const Profile back = read_profile(test::checked(to_yaml(p), profile_fields()));
  REQUIRE(back.gpu);
  CHECK(back.gpu->multiprocessors == 132);
  CHECK(back.gpu->group == 8);
  CHECK(back.gpu->parts == 2);
  CHECK(back.gpu->part == 64);
  CHECK(back.gpu->memory.value == 8e9);
  CHECK(back.gpu->memory_alone.value == 6e9);
  CHECK(back.layers.back().slowdown == 1.25);
  CHECK(to_yaml(back) == to_yaml(p));
  CHECK(to_yaml(two_sizes()).find("gpu") == std::string::npos);
}

TEST_CASE("impossible parts of a GPU are refused") {
  const auto said = [](auto&& change) {
    Profile p = of_parts(1.25);
    p.machine = p.date = p.commit = p.backend = p.precision = p.optimizer = "some";
    change(*p.gpu);
    const config::Value tree = test::checked(to_yaml(p), profile_fields());
    return test::input_error_of([&] { read_profile(tree); });
  };
  const auto has = [&](const std::string& text, const char* words) {
    CHECK_MESSAGE(text.find(words) != std::string::npos, text);
  };
  has(said([](MeasuredGpu& g) { g.parts = 400, g.part = 32; }),
      "profile.gpu.parts: 400 parts of 32 cannot fit into 132 multiprocessors [at most 4 parts]");
  has(said([](MeasuredGpu& g) { g.part = 133; }),
      "2 parts of 133 cannot fit into 132 multiprocessors [part: at most 132]");
  has(said([](MeasuredGpu& g) { g.parts = 1'000'000, g.part = 131; }),
      "cannot fit into 132 multiprocessors [at most 1 part]");
  has(said([](MeasuredGpu& g) { g.group = 133; }), "profile.gpu.group: a group of 133 does not fit into 132");
  has(said([](MeasuredGpu& g) { g.memory_alone = Bandwidth{9e9}; }),
      "profile.gpu.memory_alone: 9 GB/s are more than the 8 GB/s that all parts get together");
  has(said([](MeasuredGpu& g) { g.memory = g.memory_alone = Bandwidth{0}; }),
      "profile.gpu.memory: 0 GB/s is not possible here [it has to be more than zero]");
  has(said([](MeasuredGpu& g) { g.memory_alone = Bandwidth{0}; }), "profile.gpu.memory_alone: 0 GB/s is not possible");
  has(said([](MeasuredGpu& g) { g.part = 66; }), "nothing");   // All that there are.
  has(said([](MeasuredGpu& g) { g.part = 132; }), "nothing");  // Not divided.
}

TEST_CASE("the traffic of GPU parts is what slows them together as much as was measured") {
  const ModelGraph model = test::deep_net(2, 6, 8, 3);
  const Cluster parts = two_parts("thread"), apart = test::bare_cluster(1);
  // 4 us alone and 4 x 1.25 together, at 4 GB/s each: 20 kB, which one part alone moves in 3.3 us.
  const Profile slowed = of_parts(1.25);
  const LayerCost cost = CostTable(model, parts, &slowed).at(LayerId{1}, DeviceTypeId{0}, whole_samples(4));
  CHECK(cost.forward.value == doctest::Approx(4e-6));
  CHECK(cost.traffic.forward.value == doctest::Approx(20e3));
  CHECK(cost.traffic.weight_gradient.value == doctest::Approx(40e3));
  // Twice as slow would be 32 kB, more than the 24 kB that one part alone can move in 4 us.
  const Profile halved = of_parts(2);
  CHECK(CostTable(model, parts, &halved).at(LayerId{1}, DeviceTypeId{0}, whole_samples(4)).traffic.forward.value ==
        doctest::Approx(24e3));
  // Not slowed beyond its spread of 0.1: what is counted, here without weights 4 x (6 + 8) numbers of 8 bytes.
  const Profile same = of_parts(1.05);
  CHECK(CostTable(model, parts, &same).at(LayerId{1}, DeviceTypeId{0}, whole_samples(4)).traffic.forward.value ==
        doctest::Approx(448));
  // Where memory is not shared, times are those with all busy.
  Cluster renamed = apart;
  renamed.types[DeviceTypeId{0}].name = "thread";
  const LayerCost alone = CostTable(model, renamed, &slowed).at(LayerId{1}, DeviceTypeId{0}, whole_samples(4));
  CHECK(alone.forward.value == doctest::Approx(5e-6));
  CHECK(alone.traffic.forward.value == 0);
}

TEST_CASE("without a profile the traffic is the bytes of the roofline") {
  const ModelGraph model = test::deep_net(2, 6, 8, 3);
  const Cluster parts = two_parts("gpu");
  const CostTable costs(model, parts);
  const LayerCost cost = costs.at(LayerId{1}, DeviceTypeId{0}, whole_samples(4));
  CHECK(cost.traffic.forward.value == doctest::Approx(cost.forward.value * 6e9));  // No peak: bound by memory.
  CHECK(costs.update_traffic(100, DeviceTypeId{0}).value ==
        doctest::Approx(costs.update(100, DeviceTypeId{0}).value * 6e9));
  CHECK(costs.touch_traffic(100, DeviceTypeId{0}).value == doctest::Approx(100 * model.precision.weight));
}

}  // namespace stagecraft::profile_test
