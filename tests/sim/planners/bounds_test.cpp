// Lower bounds compared with the best of all plans of small random models.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/planners/chain_partition/pipedream.hpp"
#include "sim/planners/chain_partition/planning.hpp"
#include "sim/planners/graph/exact.hpp"
#include "sim/planners/shared/bounds.hpp"
#include "tests/sim/planners/random_graph.hpp"
#include "tests/support/clusters.hpp"

namespace stagecraft::bounds_test {
namespace {

/// Layers with separate times on each type, in proportion to the samples.
ModelGraph random_model(Rng& rng, int layers, bool chain, int types) {
  const Digraph graph = test::random_graph(rng, layers, chain);
  ModelGraph model;
  for (int l = 0; l < layers; ++l) {
    Layer layer;
    layer.name = "l" + std::to_string(l);
    for (const int input : graph.previous[l]) layer.inputs.push_back(LayerId{input});
    const double size = rng.integer(0, 9);
    for (int t = 0; t < types; ++t) {
      const double seconds = size * rng.uniform(0.5, 2);
      layer.times_on["t" + std::to_string(t)] = {
          {seconds}, {seconds * rng.uniform(0.5, 1.5)}, {seconds * rng.uniform(0.5, 1.5)}};
    }
    model.layers.push_back(std::move(layer));
  }
  return model;
}

Cluster random_cluster(Rng& rng, int devices, int types) {
  Cluster cluster = test::star(devices, 1e12, 0);
  cluster.types.resize(types);
  for (int t = 0; t < types; ++t) cluster.types[DeviceTypeId{t}].name = "t" + std::to_string(t);
  for (int d = 0; d < devices; ++d)
    cluster.devices[DeviceId{d}].type = DeviceTypeId{d < types ? d : rng.integer(0, types - 1)};
  return cluster;
}

std::vector<DeviceId> all_of(const Cluster& cluster) {
  std::vector<DeviceId> devices;
  for (const DeviceId d : cluster.devices.ids()) devices.push_back(d);
  return devices;
}

/// The least period over all divisions into stages and all choices of devices, without messages.
double best_period(const bounds::BoundQuery& q) {
  const chain_partition::Types types = chain_partition::types_of(q.costs.cluster(), q.devices);
  const Digraph graph = chain_partition::layer_graph(q.costs.model());
  chain_partition::MixedWork work{{}, types.type_of};
  for (const DeviceTypeId type : types.types)
    work.by_type.push_back(
        chain_partition::sum_up(chain_partition::amounts_of(q.costs, type, whole_samples(q.micro_batch)), graph,
                                chain_partition::all_cuts(graph, 10000)));
  const auto machines = static_cast<int>(q.devices.size());
  chain_partition::PipeDreamOptions options;
  options.levels = {{machines, 1}};
  options.transfers = 0, options.fewer = true;
  return chain_partition::search_all(work, options, 100'000'000)->seconds;
}

struct Tightness {
  double sum = 0, lowest = 1;
  int count = 0;
  void add(double ratio) { sum += ratio, lowest = std::min(lowest, ratio), ++count; }
};

/// The linear program of two types: layers go to the first in the order in which they suit it better, and at most one
/// is split.
double shared_by_ratio(const std::vector<std::vector<double>>& seconds, const std::vector<int>& counts) {
  std::vector<std::size_t> order(seconds.front().size());
  for (std::size_t l = 0; l < order.size(); ++l) order[l] = l;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return seconds[0][a] * seconds[1][b] < seconds[0][b] * seconds[1][a];
  });
  double first = 0, second = 0;
  for (const double s : seconds[1]) second += s;
  for (const std::size_t l : order) {
    const double after = (first + seconds[0][l]) / counts[0], before = (second - seconds[1][l]) / counts[1];
    if (after >= before) {  // Both are busy as long with a share x of it on the first.
      const double x =
          (second / counts[1] - first / counts[0]) / (seconds[0][l] / counts[0] + seconds[1][l] / counts[1]);
      return (first + x * seconds[0][l]) / counts[0];
    }
    first += seconds[0][l], second -= seconds[1][l];
  }
  return first / counts[0];
}

}  // namespace

TEST_CASE("bounds: no plan of 500 random cases is below them") {
  Rng rng(31, "bounds");
  Tightness work, longest, stages, best;
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const int types = rng.integer(1, 3), devices = rng.integer(types, 5);
    const ModelGraph model = random_model(rng, rng.integer(1, 6), round % 2 == 0, types);
    const Cluster cluster = random_cluster(rng, devices, types);
    const CostTable costs(model, cluster);
    const bounds::BoundQuery q{costs, all_of(cluster), rng.integer(1, 6), rng.integer(1, 8)};
    const double optimum = best_period(q), limit = optimum * (1 + 1e-9);
    if (optimum == 0) continue;
    const auto whole = bounds::stages(q, false);
    REQUIRE(whole.has_value());
    CHECK(bounds::work(q).each.value <= limit);
    CHECK(bounds::longest(q).each.value <= limit);
    CHECK(whole->each.value <= limit);
    CHECK(bounds::best(q, {true, false}).each.value <= limit);
    // No device has a part of a layer alone in a division into stages, so this one is never the weaker.
    CHECK(whole->each.value >= bounds::work(q).each.value * (1 - 1e-9));
    work.add(bounds::work(q).each.value / optimum), longest.add(bounds::longest(q).each.value / optimum);
    stages.add(whole->each.value / optimum), best.add(bounds::best(q, {true, false}).each.value / optimum);
  }
  for (const auto& [name, t] :
       {std::pair{std::string("work"), work}, {"longest layer", longest}, {"stages", stages}, {"best", best}})
    MESSAGE(name, ": ", t.sum / t.count, " of the optimum on average, at least ", t.lowest);
  CHECK(best.count > 450);
  CHECK(best.sum / best.count > 0.9);
}

TEST_CASE("bounds: no optimum with fill of 200 random cases is below them") {
  Rng rng(32, "filled");
  Tightness filled, path;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const ModelGraph model = random_model(rng, rng.integer(1, 6), round % 2 == 0, 1);
    const Cluster cluster = random_cluster(rng, rng.integer(1, 5), 1);
    const CostTable costs(model, cluster);
    const bounds::BoundQuery q{costs, all_of(cluster), 1, rng.integer(1, 8)};
    graph::GraphProblem p;
    p.layers = chain_partition::layer_graph(model);
    p.devices = static_cast<int>(q.devices.size()), p.micro_batches = q.micro_batches, p.replicas = {1};
    for (const chain_partition::LayerAmounts& layer :
         chain_partition::amounts_of(costs, DeviceTypeId{0}, whole_samples(1))) {
      p.amounts.emplace_back().seconds[0] = layer.seconds;
      p.output.push_back(0);
    }
    const double optimum = graph::search_exact(p, {})->value / q.micro_batches, limit = optimum * (1 + 1e-9);
    if (optimum == 0) continue;
    const auto whole = bounds::stages(q, true);
    REQUIRE(whole.has_value());
    CHECK(whole->each.value <= limit);
    CHECK(bounds::path(q).each.value <= limit);
    CHECK(whole->each.value >= bounds::stages(q, false)->each.value * (1 - 1e-12));
    filled.add(whole->each.value / optimum), path.add(bounds::path(q).each.value / optimum);
  }
  MESSAGE("filled: ", filled.sum / filled.count, " of the shortest iteration without replicas on average, at least ",
          filled.lowest, "; path alone ", path.sum / path.count);
  CHECK(filled.count > 150);
}

TEST_CASE("bounds: split weight gradients do not lengthen the round trip of a micro-batch") {
  const auto chain = [](std::vector<double> weight_gradients) {
    ModelGraph model;
    for (std::size_t l = 0; l < weight_gradients.size(); ++l) {
      model.layers.emplace_back();
      model.layers[LayerId{l}].name = "l" + std::to_string(l);
      if (l > 0) model.layers[LayerId{l}].inputs = {LayerId{static_cast<std::int64_t>(l) - 1}};
      model.layers[LayerId{l}].times_on["t0"] = {{1}, {1}, {weight_gradients[l]}};
    }
    return model;
  };
  Rng rng(34, "split");
  const Cluster cluster = random_cluster(rng, 4, 1);
  const ModelGraph equal = chain({1, 1, 1, 1}), last = chain({0, 10});
  const CostTable costs(equal, cluster), costs_last(last, cluster);
  bounds::BoundQuery q{costs, all_of(cluster)};
  CHECK(bounds::path(q).each.value == 12);  // F, I and W of all four.
  CHECK(bounds::best(q, {true, true}).each.value == doctest::Approx(12).epsilon(1e-9));
  q.split_backward = true;
  CHECK(bounds::path(q).each.value == 9);  // F and I of all four, then W of the first.
  CHECK(bounds::best(q, {true, true}).each.value == doctest::Approx(9).epsilon(1e-9));
  // ZB-H1 takes 11 for two micro-batches: more than 9, less than 12.
  q.micro_batches = 2;
  CHECK(bounds::best(q, {true, true}).each.value == doctest::Approx(4.5).epsilon(1e-9));
  // The next iteration enters the first layer while W of the last is under way: 1 + 1 + 10, not 2 + 2 + 10.
  bounds::BoundQuery heavy_end{costs_last, all_of(cluster)};
  heavy_end.split_backward = true;
  CHECK(bounds::path(heavy_end).each.value == 12);
}

TEST_CASE("bounds: a bound that is known is not computed again") {
  Rng rng(35, "known");
  const ModelGraph model = random_model(rng, 5, false, 2);
  const Cluster cluster = random_cluster(rng, 4, 2);
  const CostTable costs(model, cluster);
  bounds::BoundQuery q{costs, all_of(cluster), 2, 4};
  bounds::BoundCache cache;
  for (int twice = 0; twice < 2; ++twice)
    for (const bounds::Kind& kind : {bounds::Kind{true, true}, {true, false}, {false, true}})
      CHECK(cache.best(q, kind).each == bounds::best(q, kind).each);
  CHECK(cache.size() == 3);
  q.micro_batch = 1;
  CHECK(cache.best(q, {}).each == bounds::best(q, {}).each);
  q.split_backward = true;
  CHECK(cache.best(q, {}).each == bounds::best(q, {}).each);
  CHECK(cache.size() == 5);
}

TEST_CASE("bounds: shared work equals the optimum of a linear program") {
  CHECK(bounds::shared_work({{1, 2, 3}}, {2}) == 3);  // One type: the sum over the devices.
  // Each layer suits one type. A 104th of the second goes to the other: 3 + 100 / 104 = 4 - 4 / 104.
  CHECK(bounds::shared_work({{3, 100}, {100, 4}}, {1, 1}) == doctest::Approx(4 - 4 / 104.0).epsilon(1e-9));
  // 6 s of work at speed 1, devices of speeds 1 and 2: 6 / 3.
  CHECK(bounds::shared_work({{6}, {3}}, {1, 1}) == doctest::Approx(2).epsilon(1e-9));
  CHECK(bounds::shared_work({{6, 6}, {3, 3}}, {2, 1}) == doctest::Approx(3).epsilon(1e-9));
  CHECK(bounds::shared_work({{0, 0}}, {3}) == 0);
  Rng rng(33, "shared");
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const std::vector<int> counts{rng.integer(1, 3), rng.integer(1, 3)};
    std::vector<std::vector<double>> seconds(2);
    for (int l = rng.integer(1, 8); l > 0; --l)
      for (std::vector<double>& type_seconds : seconds) type_seconds.push_back(rng.uniform(0.1, 5));
    CHECK(bounds::shared_work(seconds, counts) == doctest::Approx(shared_by_ratio(seconds, counts)).epsilon(1e-9));
    // A third type that is never of use adds nothing but its devices' price.
    seconds.push_back(std::vector<double>(seconds.front().size(), 1e9));
    CHECK(bounds::shared_work(seconds, {counts[0], counts[1], 1}) <=
          shared_by_ratio({seconds[0], seconds[1]}, counts) * (1 + 1e-9));
  }
}

TEST_CASE("bounds: the properties of a plan decide which bounds hold for it") {
  Plan plan = chain_plan(2, 2, 4);
  CHECK(bounds::kind_of(plan, true).whole_stages);
  plan.stages[StageId{1}].place_on(plan.stages[StageId{0}].leaders);
  CHECK_FALSE(bounds::kind_of(plan, true).whole_stages);
  plan = chain_plan(2, 2, 4);
  plan.stages[StageId{0}].task = StageTask::Forward;
  CHECK_FALSE(bounds::kind_of(plan, true).whole_stages);
}

}  // namespace stagecraft::bounds_test
