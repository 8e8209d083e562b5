// The planner pipedream against every plan that its formula prices: all divisions of a chain into stages, all numbers
// of replicas that a run accepts, on one level and on servers. The formula is written down here once more.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"

namespace stagecraft::pipedream_replicas_test {
namespace {

struct ChainLayer {
  double seconds = 0, output = 0, parameters = 0;  ///< Amounts of one sample.
};

/// A chain on `servers` servers of devices of one type each; one server is a single level.
struct Case {
  std::vector<ChainLayer> layers;
  std::vector<double> slowness;  ///< [server]: how many times longer its devices compute than the fastest ones.
  int each = 1;                  ///< Devices of a server.
  double inside = 1, between = 1;
  int micro_batches = 1, size = 1;
  bool shares_micro_batches = true, paper = false, fewer = false;
  double transfers = 1;
  std::optional<double> memory;

  int servers() const { return static_cast<int>(slowness.size()); }
  int count() const { return static_cast<int>(layers.size()); }
  bool accepts(int replicas) const { return shares_micro_batches ? micro_batches % replicas == 0 : replicas <= size; }
};

/// Prices plans on the machines of one level. A machine takes `on_machine(from, to, replicas, type)` for layers whose
/// stage has `replicas` machines.
struct LevelPlans {
  const Case& c;
  double bandwidth;
  std::vector<int> machines;  ///< [type]
  int inside;                 ///< Machines of the level inside; 1 on the innermost level.
  bool one_type_each;         ///< Whether the machines of a stage have one type.
  int outside;                ///< Replicas on the levels outside.
  std::function<double(int, int, int, int)> on_machine;

  double sum(double ChainLayer::*member, int from, int to) const {
    double total = 0;
    for (int l = from; l < to; ++l) total += c.layers[l].*member * (member == &ChainLayer::parameters ? 1 : c.size);
    return total;
  }
  double edge(int cut, int replicas) const {
    if (cut == c.count()) return 0;
    const double whole = 2 * c.layers[cut - 1].output * c.size * c.transfers / bandwidth;
    return c.paper ? whole : whole / replicas;
  }
  bool fits(int from, int to, int replicas, int after) const {
    const int in_flight = (after + replicas - 1) / replicas;
    const double each = sum(&ChainLayer::parameters, from, to) + sum(&ChainLayer::output, from, to);
    return !c.memory || in_flight * each <= *c.memory * (1 + 1e-12);
  }
  /// The first stage pays for no message, and for its all-reduce with the links of all machines inside.
  double stage(bool is_first, int from, int to, int replicas, double seconds) const {
    const double r = replicas, weights = sum(&ChainLayer::parameters, from, to);
    const double all_reduce =
        c.paper ? 2 * (r - 1) * weights / bandwidth : 4 * (r - 1) * weights / (bandwidth * r) / (is_first ? inside : 1);
    const double time = (c.paper ? std::max(seconds, all_reduce) : seconds + all_reduce) / r;
    return is_first ? time : std::max({time, edge(from, replicas), edge(to, replicas)});
  }

  /// The least period of the layers [from, to) over all plans whose later stages have `used` machines of each type.
  double best(int from, int to, std::vector<int>& used, bool fewer) const {
    double shortest = kInfinity;
    int after = 0;
    for (const int n : used) after += n;
    std::vector<int> chosen(machines.size(), 0);
    each_choice(0, used, chosen, [&](int replicas, auto&& seconds_of) {
      if (!c.accepts(outside * replicas)) return;
      for (int cut = from; cut < to; ++cut) {
        if (!fits(cut, to, replicas, after)) continue;
        const double time = stage(cut == from, cut, to, replicas, seconds_of(cut, to));
        std::vector<int> then = used;
        for (std::size_t t = 0; t < chosen.size(); ++t) then[t] += chosen[t];
        if (cut == from)
          shortest = fewer || then == machines ? std::min(shortest, time) : shortest;
        else
          shortest = std::min(shortest, std::max(time, best(from, cut, then, fewer)));
      }
    });
    return shortest;
  }

  template <class Visit>
  void each_choice(std::size_t type, const std::vector<int>& used, std::vector<int>& chosen, const Visit& visit) const {
    if (type < machines.size()) {
      for (chosen[type] = 0; used[type] + chosen[type] <= machines[type]; ++chosen[type])
        each_choice(type + 1, used, chosen, visit);
      chosen[type] = 0;
      return;
    }
    int replicas = 0, types = 0;
    for (const int n : chosen) replicas += n, types += n > 0;
    if (replicas == 0 || (one_type_each && types > 1)) return;
    visit(replicas, [&](int from, int to) {
      double slowest = 0;
      for (std::size_t t = 0; t < chosen.size(); ++t)
        if (chosen[t] > 0) slowest = std::max(slowest, on_machine(from, to, replicas, static_cast<int>(t)));
      return slowest;
    });
  }
};

std::vector<double> types_of(const Case& c) {
  std::vector<double> types;
  for (const double slow : c.slowness)
    if (std::find(types.begin(), types.end(), slow) == types.end()) types.push_back(slow);
  return types;
}

double compute(const Case& c, double slowness, int from, int to) {
  double seconds = 0;
  for (int l = from; l < to; ++l) seconds += c.layers[l].seconds * c.size * slowness;
  return seconds;
}

/// The least period by the formula on one level of all devices.
double best_on_one_level(const Case& c, bool fewer) {
  const std::vector<double> types = types_of(c);
  std::vector<int> counts;
  for (const double type : types)
    counts.push_back(c.each * static_cast<int>(std::count(c.slowness.begin(), c.slowness.end(), type)));
  const double bandwidth = c.servers() > 1 ? std::min(c.inside, c.between) : c.inside;
  const LevelPlans plans{c,
                         bandwidth,
                         counts,
                         1,
                         false,
                         1,
                         [&](int from, int to, int, int type) {
                           return compute(c, types[type], from, to); }};
  std::vector<int> used(types.size(), 0);
  return plans.best(0, c.count(), used, fewer);
}

/// The least period on servers, whose devices a stage has all or, with other stages of the server, divides.
double best_on_servers(const Case& c, bool fewer) {
  const std::vector<double> types = types_of(c);
  std::vector<int> counts;
  for (const double type : types)
    counts.push_back(static_cast<int>(std::count(c.slowness.begin(), c.slowness.end(), type)));
  const auto on_server = [&](int from, int to, int servers, int type) {
    const LevelPlans plans{c,
                           c.inside,
                           {c.each},
                           1,
                           false,
                           servers,
                           [&](int a, int b, int, int) {
                             return compute(c, types[type], a, b); }};
    std::vector<int> used{0};
    return plans.best(from, to, used, fewer);
  };
  const LevelPlans plans{c, std::min(c.inside, c.between), counts, c.each, true, 1, on_server};
  std::vector<int> used(types.size(), 0);
  return plans.best(0, c.count(), used, fewer);
}

ModelGraph model_of(const Case& c) {
  ModelGraph model;
  for (std::size_t l = 0; l < c.layers.size(); ++l) {
    Layer layer;
    layer.name = fmt::format("l{}", l);
    if (l > 0) layer.inputs = {LayerId{static_cast<std::int64_t>(l) - 1}};
    const Seconds third{c.layers[l].seconds / 3};
    layer.times = LayerTimes{third, third, third};
    layer.output = layer.stash = Bytes{c.layers[l].output};
    layer.parameters = c.layers[l].parameters / model.precision.weight;
    model.layers.push_back(std::move(layer));
  }
  return model;
}

/// Servers whose devices share a switch; one more switch joins them.
Cluster cluster_of(const Case& c) {
  const int devices = c.servers() * c.each;
  const std::vector<double> types = types_of(c);
  Cluster cluster = test::bare_cluster(devices, c.servers() + 1);
  cluster.types.clear();
  for (const double slow : types) {
    cluster.types.push_back({});
    cluster.types.back().speed = 1 / slow;
  }
  for (int d = 0; d < devices; ++d) {
    Device& device = cluster.devices[DeviceId{d}];
    device.host = fmt::format("h{}", d / c.each);
    device.type = DeviceTypeId{std::find(types.begin(), types.end(), c.slowness[d / c.each]) - types.begin()};
    test::connect(cluster, {d, devices + d / c.each}, c.inside, 0);
  }
  for (int s = 0; s < c.servers(); ++s) test::connect(cluster, {devices + s, devices + c.servers()}, c.between, 0);
  return cluster;
}

std::string options_of(const Case& c, const std::string& machines) {
  std::string text = fmt::format("{{micro_batch_size: {}, share: {}, transfers: {}, fewer: {}, formula: {}", c.size,
                                 c.shares_micro_batches ? "micro_batches" : "samples", c.transfers, c.fewer,
                                 c.paper ? "paper" : "released");
  if (c.memory) text += fmt::format(", memory: {} B", *c.memory);
  if (!machines.empty()) text += ", machines: " + machines;
  return text + "}";
}

Case random_case(Rng& rng) {
  Case c;
  for (int l = rng.integer(1, 5); l > 0; --l)
    c.layers.push_back(
        {rng.uniform(0.1, 3), rng.integer(0, 2) * rng.uniform(0, 8), rng.integer(0, 2) * rng.uniform(0, 4)});
  constexpr int kShapes[][2] = {{1, 2}, {1, 3}, {1, 5}, {1, 7}, {1, 12}, {1, 13},
                                {2, 3}, {3, 2}, {4, 4}, {2, 2}, {5, 2}};
  const auto& [servers, each] = kShapes[rng.integer(0, 10)];
  const bool mixed = rng.integer(0, 3) == 0 && servers * each <= 10;
  c.each = each;
  // Mixed devices of a single level are servers of one device.
  const bool flat_mixed = mixed && servers == 1;
  if (flat_mixed) c.each = 1;
  const double slow = rng.uniform(1.1, 3);
  for (int s = 0; s < (flat_mixed ? each : servers); ++s) c.slowness.push_back(mixed && s % 2 == 1 ? slow : 1);
  c.inside = rng.uniform(2, 30), c.between = rng.uniform(1, 20);
  if (flat_mixed) c.between = c.inside;
  constexpr int kNumbers[] = {1, 2, 6, 7, 8, 12, 13, 15, 24, 60};
  c.micro_batches = kNumbers[rng.integer(0, 9)];
  c.shares_micro_batches = rng.integer(0, 3) > 0;
  c.size = c.shares_micro_batches ? rng.integer(1, 2) : rng.integer(1, 16);
  c.paper = rng.integer(0, 2) == 0, c.fewer = rng.integer(0, 3) == 0;
  c.transfers = rng.integer(0, 2) / 2.0;
  if (rng.integer(0, 2) == 0) c.memory = c.size * rng.uniform(5, 40);
  return c;
}

/// Whether the devices are one level by default.
bool is_flat(const Case& c) { return c.servers() == 1 || c.each == 1; }

/// What the planner answers, and what it says of its limit; nothing when it refuses.
void compare(const Case& c, const std::string& machines, const std::function<double(bool)>& best_of_all) {
  double best = best_of_all(c.fewer);
  // Only micro-batches that replicas cannot divide may leave devices idle unasked.
  if (best == kInfinity && c.shares_micro_batches) best = best_of_all(true);
  CAPTURE(best);
  if (best == kInfinity) {
    CHECK_THROWS_AS(test::planned("pipedream", model_of(c), cluster_of(c), options_of(c, machines), c.micro_batches),
                    Infeasible);
    return;
  }
  const Planned result =
      test::planned("pipedream", model_of(c), cluster_of(c), options_of(c, machines), c.micro_batches);
  CHECK(result.predicted.value == doctest::Approx(best).epsilon(1e-9));
  CHECK(result.model_limit.value == doctest::Approx(best).epsilon(1e-9));
  CHECK(result.limit_reason.find("exhaustive") != std::string::npos);
  for (const Stage& stage : result.plan.stages) CHECK(c.accepts(static_cast<int>(stage.leaders.size())));
}

}  // namespace

TEST_CASE("pipedream: no plan that a run accepts is shorter by its formula, on 200 random chains") {
  Rng rng(8, "replicas");
  int on_servers = 0, divided = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const Case c = random_case(rng);
    const auto one_level = [&](bool fewer) { return best_on_one_level(c, fewer); };
    const auto servers = [&](bool fewer) { return best_on_servers(c, fewer); };
    CAPTURE(options_of(c, ""));
    compare(c, fmt::format("[{}]", c.servers() * c.each), one_level);
    if (is_flat(c)) continue;
    compare(c, fmt::format("[{}, {}]", c.each, c.servers()), servers);
    const auto by_default = [&](bool fewer) {
      return c.shares_micro_batches ? std::min(servers(fewer), one_level(fewer)) : servers(fewer);
    };
    compare(c, "", by_default);
    ++on_servers;
    divided += c.shares_micro_batches;
  }
  CHECK(on_servers > 60);
  CHECK(divided > 40);
}

TEST_CASE("pipedream: 60 micro-batches on 4 servers of 4 have 12 and 4 replicas, or 15 and 1") {
  Case c;
  c.each = 4, c.slowness = {1, 1, 1, 1}, c.micro_batches = 60;
  c.inside = c.between = 1e9;
  const auto shape = [&](double first, double second) {
    c.layers = {{first, 0, 0}, {second, 0, 0}};
    const Planned result = test::planned("pipedream", model_of(c), cluster_of(c), options_of(c, ""), c.micro_batches);
    CHECK(result.predicted.value == doctest::Approx(1).epsilon(1e-12));
    CHECK(result.limit_reason ==
          "the search was exhaustive, with stages on whole machines of each level, and with all devices as one level");
    std::string text;
    for (const Stage& stage : result.plan.stages) text += fmt::format("{} ", stage.leaders.size());
    return text;
  };
  CHECK(shape(12, 4) == "12 4 ");
  CHECK(shape(15, 1) == "15 1 ");
  CHECK(shape(6, 10) == "6 10 ");
}

}  // namespace stagecraft::pipedream_replicas_test
