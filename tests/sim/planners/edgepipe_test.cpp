#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/planners/edgepipe/search.hpp"
#include "sim/planners/shared/planner.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/planning.hpp"

namespace stagecraft::edgepipe_test {
using namespace stagecraft::edgepipe;

namespace {

std::vector<double> draw(Rng& rng, int count, double low, double high) {
  std::vector<double> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(rng.integer(0, 3) ? rng.uniform(low, high) : high);
  return numbers;
}

/// Draws a problem whose memory, links, data devices and buffers mostly affect the result.
ChainProblem draw_problem(Rng& rng) {
  ChainProblem p;
  p.layers = rng.integer(1, 6);
  p.message = draw(rng, p.layers + 1, 0, 4);
  p.weights = Runs::sums(draw(rng, p.layers, 0, 5));
  p.buffers_in = rng.integer(0, 2);
  p.buffers_out = rng.integer(0, 2);
  const int kinds = rng.integer(1, 4);
  for (int u = 0; u < kinds; ++u)
    p.machines.push_back({.count = u == 0 ? rng.integer(1, 2) : 1,
                          .compute = Runs::sums(draw(rng, p.layers, 0, 6)),
                          .memory = rng.integer(0, 3) ? rng.uniform(2, 30) : 100.0,
                          .bandwidth = rng.integer(0, 8) ? rng.uniform(0.2, 4) : 0,
                          .first_only = u > 0 && rng.integer(0, 5) == 0});
  return p;
}

/// Visits every order of every subset of the devices with every cut, priced as in the papers; it shares only the sums
/// over layers with the search.
void every_chain(const ChainProblem& p, const std::function<void(const Chain&)>& visit) {
  std::vector<int> left;
  for (const MachineKind& m : p.machines) left.push_back(m.count);
  Chain chain;
  const std::function<void(int)> extend = [&](int from) {
    if (from == p.layers) return visit(chain);
    for (int u = 0; u < static_cast<int>(left.size()); ++u) {
      const auto k = static_cast<std::size_t>(u);
      const MachineKind& machine = p.machines[k];
      if (left[k] == 0 || (machine.first_only && from > 0)) continue;
      for (int to = from + 1; to <= p.layers; ++to) {
        const double in = p.message[from], out = p.message[to];
        const double waits = (from > 0 ? p.buffers_in * in : 0) + p.buffers_out * out;
        if (!(machine.memory > p.weights.at(from, to) + waits + in + out)) continue;
        --left[k];
        chain.push_back({from, to, u});
        extend(to);
        chain.pop_back();
        ++left[k];
      }
    }
  };
  extend(0);
}

/// The value of the objective; infinite if a link is missing.
double value_of(const ChainProblem& p, const Chain& chain, Objective objective, int items) {
  double slowest = 0, hops = 0, slowest_hop = 0, computing = 0;
  for (std::size_t s = 0; s < chain.size(); ++s) {
    const MachineKind& machine = p.machines[chain[s].machines];
    const double compute = machine.compute.at(chain[s].from, chain[s].to);
    slowest = std::max(slowest, compute);
    computing += compute;
    if (s == 0) continue;
    const MachineKind& before = p.machines[chain[s - 1].machines];
    if (before.bandwidth == 0 || machine.bandwidth == 0) return kInfinity;
    const double bytes = p.message[chain[s].from];
    const double hop = std::max(bytes / before.bandwidth, bytes / machine.bandwidth);
    hops += hop;
    slowest_hop = std::max(slowest_hop, hop);
  }
  const double period = std::max(slowest, slowest_hop);
  switch (objective) {
    case Objective::Bottleneck:
      return period;
    case Objective::Latency:
      return computing + hops;
    case Objective::Finite:
      return computing + hops + (items - 1) * period;
    case Objective::Shared:
      return std::max(slowest, hops);
  }
  return kInfinity;
}

bool may_stand(const ChainProblem& p, const Chain& chain) {
  bool matches = false;
  every_chain(p, [&](const Chain& other) {
    matches =
        matches || std::equal(chain.begin(), chain.end(), other.begin(), other.end(), [](ChainStage a, ChainStage b) {
          return a.from == b.from && a.to == b.to && a.machines == b.machines;
        });
  });
  return matches;
}

}  // namespace

TEST_CASE("edgepipe equals brute force: every order, subset and cut, for every objective") {
  Rng rng(7, "edgepipe");
  int feasible = 0, infeasible = 0, several = 0;
  for (int round = 0; round < 1500; ++round) {
    const ChainProblem p = draw_problem(rng);
    const int items = rng.integer(1, 12);
    for (const Objective objective :
         {Objective::Bottleneck, Objective::Latency, Objective::Finite, Objective::Shared}) {
      CAPTURE(round);
      CAPTURE(static_cast<int>(objective));
      double best = kInfinity;
      every_chain(p, [&](const Chain& chain) { best = std::min(best, value_of(p, chain, objective, items)); });
      const auto result = search(p, objective, items);
      REQUIRE(result.has_value() == (best < kInfinity));
      (result ? feasible : infeasible) += 1;
      if (!result) continue;
      several += result->chain.size() > 1 ? 1 : 0;
      CHECK(may_stand(p, result->chain));
      CHECK(value_of(p, result->chain, objective, items) == doctest::Approx(best).epsilon(1e-12));
      double least_period = kInfinity;
      const Objective period = objective == Objective::Shared ? Objective::Shared : Objective::Bottleneck;
      every_chain(p, [&](const Chain& c) { least_period = std::min(least_period, value_of(p, c, period, 1)); });
      CHECK(result->least_period == doctest::Approx(least_period).epsilon(1e-12));
      CHECK(result->period == doctest::Approx(value_of(p, result->chain, period, 1)).epsilon(1e-12));
    }
  }
  MESSAGE(feasible << " feasible, " << several << " of them in several stages, " << infeasible << " infeasible");
  CHECK(feasible > 1000);
  CHECK(several > 1000);
  CHECK(infeasible > 500);
}

TEST_CASE("edgepipe: equal periods are ordered by latency, then by number of stages") {
  Rng rng(8, "ties");
  for (int round = 0; round < 300; ++round) {
    const ChainProblem p = draw_problem(rng);
    const auto result = search(p, Objective::Bottleneck, 1);
    if (!result) continue;
    double latency = kInfinity;
    every_chain(p, [&](const Chain& chain) {
      if (value_of(p, chain, Objective::Bottleneck, 1) <= result->period)
        latency = std::min(latency, value_of(p, chain, Objective::Latency, 1));
    });
    CAPTURE(round);
    CHECK(value_of(p, result->chain, Objective::Latency, 1) == doctest::Approx(latency).epsilon(1e-12));
  }
  // Nothing to compute or send: any chain takes no time, so one stage it is.
  ChainProblem idle;
  idle.layers = 4;
  idle.message.assign(5, 0);
  idle.weights = Runs::sums({1, 1, 1, 1});
  idle.machines = {{.count = 3, .compute = Runs::sums({0, 0, 0, 0}), .memory = 10, .bandwidth = 1}};
  CHECK(search(idle, Objective::Bottleneck, 1)->chain.size() == 1);
}

TEST_CASE("edgepipe: a device needs strictly more memory than its stage takes") {
  ChainProblem p;
  p.layers = 2;
  p.message = {1, 2, 4};
  p.weights = Runs::sums({10, 10});
  p.machines = {{.count = 2, .compute = Runs::sums({1, 1}), .memory = 33, .bandwidth = 1}};
  CHECK(memory_of(p, 0, 2) == 20 + 2 * 4 + 1 + 4);          // The first stage has nothing waiting in front.
  CHECK(memory_of(p, 1, 2) == 10 + 2 * 2 + 2 * 4 + 2 + 4);  // 28, and the other stage 10 + 4 + 1 + 2.
  CHECK(search(p, Objective::Latency, 1)->chain.size() == 2);
  p.machines[0].memory = 33.5;
  CHECK(search(p, Objective::Latency, 1)->chain.size() == 1);
  p.machines[0].memory = 28;
  CHECK_FALSE(search(p, Objective::Latency, 1));
}

TEST_CASE("edgepipe plans 96 layers on 16 different devices quickly") {
  Rng rng(9, "distinct");
  ChainProblem p;
  p.layers = 96;
  p.message = draw(rng, 97, 1e6, 2e7);
  p.weights = Runs::sums(draw(rng, 96, 2e7, 3e7));
  for (int u = 0; u < 16; ++u) {
    std::vector<double> times = draw(rng, 96, 0.1, 0.6);
    for (double& t : times) t *= 1 + 0.2 * u;
    p.machines.push_back({.count = 1,
                          .compute = Runs::sums(times),
                          .memory = rng.uniform(2e8, 2e9),
                          .bandwidth = rng.uniform(1e6, 1.3e8)});
  }
  const double start = test::thread_seconds();
  const auto result = search(p, Objective::Bottleneck, 1);
  const double took = test::thread_seconds() - start;
  REQUIRE(result);
  MESSAGE(took << " s, " << result->states << " states, " << result->chain.size() << " stages");
  // No period is shorter than all the work at once, each layer where it is quickest.
  double work = 0;
  for (int l = 0; l < 96; ++l) {
    double quickest = kInfinity;
    for (const MachineKind& m : p.machines) quickest = std::min(quickest, m.compute.at(l, l + 1));
    work += quickest;
  }
  CHECK(result->period >= work / 16);
  CHECK(took < 60);
  // 64 items take no longer by the chain that is best for them than by the one with the least period.
  const auto items = search(p, Objective::Finite, 64);
  REQUIRE(items);
  const auto time = [&](const Chain& chain) { return value_of(p, chain, Objective::Finite, 64); };
  CHECK(time(items->chain) <= time(result->chain));
  const double elapsed = test::thread_seconds() - start;
  MESSAGE(elapsed << " s with 64 items");
  CHECK(elapsed < 60);
}

namespace {

/// Layers with these seconds and output bytes, one parameter in every layer.
ModelGraph chain_of(const std::vector<double>& seconds, const std::vector<double>& bytes) {
  ModelGraph model;
  for (std::size_t l = 0; l < seconds.size(); ++l) {
    Layer layer;
    layer.name = "l" + std::to_string(l);
    if (l > 0) layer.inputs = {LayerId{static_cast<std::int64_t>(l) - 1}};
    layer.times = LayerTimes{{seconds[l]}, {0}, {0}};
    layer.output = Bytes{bytes[l]};
    layer.parameters = 1;
    model.layers.push_back(std::move(layer));
  }
  return model;
}

/// Devices d0, d1, ... of these speeds on a switch, with links of these bandwidths.
Cluster switched(const std::vector<double>& speeds, const std::vector<double>& bandwidths) {
  const int n = static_cast<int>(speeds.size());
  Cluster cluster = test::bare_cluster(n, 1);
  cluster.types.clear();
  for (const DeviceId d : cluster.devices.ids()) {
    cluster.devices[d].type = cluster.types.push_back({});
    cluster.types.back().speed = speeds[d.value];
    test::connect(cluster, {d.value, n}, bandwidths[d.value], 0);
  }
  return cluster;
}

Planned plan_with(const ModelGraph& model, const Cluster& cluster, const std::string& yaml, int micro_batches = 4) {
  const PlannerDef& def = get_from(planners::catalog(), "planner", "edgepipe");
  const config::Value options = test::checked(yaml, *def.fields);
  const CostTable costs(model, cluster);
  return def.plan({.model = model,
                   .cluster = cluster,
                   .costs = costs,
                   .options = test::plan_spec(def, options, cluster),
                   .micro_batches = micro_batches,
                   .trains = false});
}

/// Stages as text: "d2 l0-l1, d0 l2".
std::string text_of(const Plan& plan, const Cluster& cluster) {
  std::string text;
  for (const Stage& stage : plan.stages) {
    const auto first = stage.shape.layers.front(), last = stage.shape.layers.back();
    text += (text.empty() ? "" : ", ") + cluster.devices[stage.leaders.front()].name + " l" +
            std::to_string(first.value) + (first == last ? "" : "-l" + std::to_string(last.value));
  }
  return text;
}

}  // namespace

TEST_CASE("edgepipe plans: speed and link of a device decide whether it is used") {
  const ModelGraph model = chain_of({4, 4, 4, 4, 4, 4}, {10, 10, 10, 10, 10, 1});
  const auto fast_behind = [&](double bandwidth) {
    const Cluster cluster = switched({1, 1, 4}, {10, 10, bandwidth});
    const Planned result = plan_with(model, cluster, "{}");
    return std::pair(result.predicted.value, text_of(result.plan, cluster));
  };
  // d2 takes a second for a layer: four there, and one each for the others.
  CHECK(fast_behind(10).first == 4);
  // A hop of 5 s is still less than the 6 s of d2 alone; one of 10 s is more.
  CHECK(fast_behind(2).first == 5);
  CHECK(fast_behind(1) == std::pair(6.0, std::string("d2 l0-l5")));
}

TEST_CASE("edgepipe plans: period, bound and memory equal the ones by hand") {
  const ModelGraph model = chain_of({2, 2, 2, 2}, {10, 10, 10, 1});
  const Cluster cluster = switched({1, 1, 2}, {10, 10, 5});
  const Planned result = plan_with(model, cluster, "{micro_batch_size: 2}", 3);
  // Items of two samples: 4 s a layer, 2 s on d2; a hop of 20 B takes 2 s, or 4 s to or from d2.
  CHECK(result.predicted.value == 4);
  CHECK(result.model_limit.value == 4);
  CHECK(result.limit_reason == "the search was exhaustive");
  CHECK(result.plan.stage_count() == 3);
  CHECK(result.plan.mini_batch == 6);
  CHECK(result.plan.edges.size() == 2);
  CHECK(result.states > 0);
  // d2 is at an end, where one slow hop is enough. The stage between the others has one layer of 4 bytes, an item in
  // and one out, and two of each that wait.
  CHECK(result.memory.value == 4 + 20 + 20 + 2 * 20 + 2 * 20);
  const Planned lean = plan_with(model, cluster, "{micro_batch_size: 2, buffers_in: 0, buffers_out: 1}", 3);
  CHECK(lean.memory.value == 4 + 20 + 20 + 20);
}

TEST_CASE("edgepipe plans: each objective has its own optimum") {
  const ModelGraph model = chain_of({4, 4}, {50, 1});
  const Cluster cluster = switched({1, 1}, {10, 10});
  // One stage: period and latency 8 s. Two: period 5 s, for the hop, and latency 13 s.
  const auto stages = [&](const std::string& objective, int items) {
    return plan_with(model, cluster, "{objective: " + objective + "}", items).plan.stage_count();
  };
  CHECK(stages("bottleneck", 1) == 2);
  CHECK(stages("latency", 100) == 1);
  CHECK(stages("finite", 2) == 1);  // 16 s against 18.
  CHECK(stages("finite", 3) == 2);  // 24 s against 23.
  const Planned latency = plan_with(model, cluster, "{objective: latency}");
  CHECK(latency.predicted.value == 8);
  CHECK(latency.model_limit.value == 5);

  Cluster medium = test::bare_cluster(2);
  test::connect(medium, {0, 1}, 5, 0, Duplex::Half);
  CHECK(plan_with(model, medium, "{objective: shared}").predicted.value == 8);  // The hop would take 10 s.
}

TEST_CASE("edgepipe plans: the device with the data runs the first stage or none") {
  const ModelGraph model = chain_of({8, 1, 1, 1}, {1, 1, 1, 1});
  const Cluster cluster = switched({1, 1.25}, {10, 10});
  const auto plan = [&](const std::string& yaml) { return text_of(plan_with(model, cluster, yaml).plan, cluster); };
  CHECK(plan("{}") == "d1 l0, d0 l1-l3");
  CHECK(plan("{data_device: d1}") == "d1 l0, d0 l1-l3");
  CHECK(plan("{data_device: d0}") == "d0 l0, d1 l1-l3");  // 8 s; all on d1 would be 8.8 s.
  CHECK(plan("{data_device: d0, objective: latency}") == "d1 l0-l3");
}

TEST_CASE("edgepipe plans: a tensor crosses every cut up to its last reader, tied weights are held twice") {
  ModelGraph model = chain_of({4, 4, 4}, {10, 10, 1});
  model.layers[LayerId{2}].inputs = {LayerId{0}, LayerId{1}};
  model.layers[LayerId{0}].tie = model.layers[LayerId{2}].tie = "embedding";
  model.layers[LayerId{2}].parameters = 0;
  const Cluster cluster = switched({1, 1, 1}, {2, 2, 2});
  const Planned result = plan_with(model, cluster, "{}");
  // In front of l2 there are both tensors, 10 s. Behind l0 it is one, 5 s, and then l1 and l2 take 8 s.
  CHECK(result.predicted.value == 8);
  CHECK(result.memory.value == 2 * 4 + 10 + 1 + 2 * 10 + 2 * 1);  // l2 has a copy of what l0 owns.
}

TEST_CASE("edgepipe plans: impossible and wrong options are refused") {
  const ModelGraph model = chain_of({4, 4}, {10, 1});
  const Cluster cluster = switched({1, 1}, {10, 10});
  const auto wrong = [&](const Cluster& on, const std::string& yaml) {
    return test::input_error_of([&] { plan_with(model, on, yaml); });
  };
  CHECK(wrong(cluster, "{devices: [d0, d0]}").find("a device is named twice") != std::string::npos);
  CHECK(wrong(cluster, "{data_device: d7}").find("data_device: the cluster has no device 'd7'") != std::string::npos);
  CHECK(wrong(cluster, "{objective: shared}").find("messages between these take several links") != std::string::npos);

  Cluster uneven = test::bare_cluster(3);
  test::connect(uneven, {0, 1}, 10, 0);
  test::connect(uneven, {1, 2}, 10, 0);
  test::connect(uneven, {0, 2}, 5, 0);
  CHECK(wrong(uneven, "{}").find("'d0' and 'd2' have 5 B/s between them and 10 B/s or more to others") !=
        std::string::npos);

  const auto refused = [&](double parameters, double memory) {
    ModelGraph heavy = chain_of({4, 4}, {1, 1});
    for (Layer& layer : heavy.layers) layer.parameters = parameters;
    Cluster small = switched({1, 1}, {10, 10});
    for (DeviceType& type : small.types) type.memory = Bytes{memory};
    try {
      plan_with(heavy, small, "{devices: [d0]}");
    } catch (const Infeasible& e) {
      return e.code() + ": " + e.what();
    }
    return std::string("nothing");
  };
  CHECK(refused(5, 44) == "nothing");  // 20 B a layer, and 3 B.
  CHECK(refused(5, 43).find(
            "memory: the model of 2 layers keeps 40 B and buffers, which no choice and order of the one device") == 0);
  CHECK(refused(5, 23).find("memory: layer 'l0' alone needs 23 B with its buffers, and no device has more than 23 B") ==
        0);
}

}  // namespace stagecraft::edgepipe_test
