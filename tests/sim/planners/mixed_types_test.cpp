// PipeDream's and Piper's searches on devices of several types, compared with an exhaustive search.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/core/numbers.hpp"
#include "sim/planners/chain_partition/mixed.hpp"
#include "sim/planners/chain_partition/pipedream.hpp"
#include "sim/planners/chain_partition/piper.hpp"
#include "tests/sim/planners/random_graph.hpp"
#include "tests/sim/planners/random_pipedream.hpp"

namespace stagecraft::mixed_types_test {
namespace {

/// Layers with a random time on each type, so that no type is always faster.
chain_partition::MixedWork random_work(Rng& rng, int layers, bool chain, int types, int devices) {
  const Digraph graph = test::random_graph(rng, layers, chain);
  const chain_partition::Cuts cuts =
      chain ? chain_partition::listed_cuts(layers) : chain_partition::all_cuts(graph, 1000);
  std::vector<chain_partition::LayerAmounts> amounts = test::random_amounts(rng, layers);
  chain_partition::MixedWork mixed;
  for (int t = 0; t < types; ++t) {
    const double slower = rng.uniform(0.3, 3);
    for (chain_partition::LayerAmounts& layer : amounts) layer.seconds *= slower * rng.uniform(0.8, 1.2);
    mixed.by_type.push_back(chain_partition::sum_up(amounts, graph, cuts));
  }
  for (int d = 0; d < devices; ++d) mixed.type_of.push_back(d < types ? d : rng.integer(0, types - 1));
  return mixed;
}

void check_devices(const std::vector<chain_partition::FoundStage>& stages, int devices, bool all_used) {
  std::set<int> used;
  std::size_t named = 0;
  for (const chain_partition::FoundStage& stage : stages) {
    used.insert(stage.devices.begin(), stage.devices.end());
    named += stage.devices.size();
  }
  CHECK(used.size() == named);
  CHECK((*used.begin() >= 0 && *used.rbegin() < devices));
  if (all_used) CHECK(static_cast<int>(named) == devices);
}

}  // namespace

TEST_CASE("pipedream on several types finds the best of all plans, on 600 random models") {
  Rng rng(21, "mixed");
  int feasible = 0, infeasible = 0, together = 0;
  for (int round = 0; round < 600; ++round) {
    CAPTURE(round);
    const bool chain = round % 2 == 0;
    const int types = rng.integer(1, 3), devices = rng.integer(types, 5);
    const chain_partition::MixedWork work = random_work(rng, rng.integer(1, chain ? 6 : 4), chain, types, devices);
    const chain_partition::PipeDreamOptions options = test::random_options(rng, devices);
    const auto result = chain_partition::search_pipedream(work, options);
    const auto best = chain_partition::search_all(work, options, 5'000'000);
    REQUIRE(result.has_value() == best.has_value());
    (result ? feasible : infeasible)++;
    if (!result) continue;
    CHECK(result->seconds == doctest::Approx(best->seconds).epsilon(1e-12));
    CHECK(chain_partition::period_of(work, result->stages, options) == doctest::Approx(best->seconds).epsilon(1e-12));
    check_devices(result->stages, devices, !options.fewer);
    for (const chain_partition::FoundStage& stage : result->stages) {
      std::set<int> stage_types;
      for (const int d : stage.devices) stage_types.insert(work.type_of[d]);
      together += stage_types.size() > 1;
    }
  }
  CHECK(feasible > 300);
  CHECK(infeasible > 50);
  CHECK(together > 50);  // Replicas of unlike types in one stage.
}

TEST_CASE("pipedream on several equal types gives the result of PipeDream's program") {
  Rng rng(22, "alike");
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const int devices = rng.integer(2, 6);
    chain_partition::MixedWork work = random_work(rng, rng.integer(1, 7), true, 1, devices);
    const chain_partition::PipeDreamOptions options = test::random_options(rng, devices);
    const auto plain = chain_partition::search_pipedream(work.by_type.front(), options);
    const auto one = chain_partition::search_pipedream(work, options);
    work.by_type.push_back(work.by_type.front());  // A second type in name only.
    for (int d = 0; d < devices; ++d) work.type_of[d] = d % 2;
    const auto two = chain_partition::search_pipedream(work, options);
    REQUIRE((plain.has_value() == one.has_value() && plain.has_value() == two.has_value()));
    if (!plain) continue;
    CHECK(one->seconds == doctest::Approx(plain->seconds).epsilon(1e-12));
    CHECK(two->seconds == doctest::Approx(plain->seconds).epsilon(1e-12));
  }
}

TEST_CASE("pipedream: servers of two types divide their layers differently") {
  // Chains of four seconds on type 0, of two seconds on type 1; servers of two devices each, messages are free.
  const std::vector<chain_partition::LayerAmounts> slow(6, {4, 0, 0}), fast(6, {2, 0, 0});
  chain_partition::MixedWork work;
  for (const auto& amounts : {slow, fast})
    work.by_type.push_back(chain_partition::sum_up(amounts, Digraph(6), chain_partition::listed_cuts(6)));
  work.type_of = {0, 1};
  chain_partition::PipeDreamOptions options;
  options.levels = {{2, 1e9}, {2, 1e9}};
  const std::vector<std::vector<chain_partition::Level>> inner(2, {{2, 1e9}});
  const auto result = chain_partition::search_pipedream(work, options, inner);
  REQUIRE(result);
  CHECK(result->seconds == 4);  // Two layers of 4 s on two slow devices, four of 2 s on two fast ones.
  check_devices(result->stages, 4, true);

  // With equal levels for all types the result equals PipeDream's own program on several levels.
  Rng rng(23, "levels");
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    chain_partition::MixedWork alike = random_work(rng, 6, true, 1, 1);
    options.levels = {{2, rng.uniform(5, 20)}, {3, rng.uniform(1, 5)}};
    const auto plain = chain_partition::search_pipedream(alike.by_type.front(), options);
    alike.type_of = {0, 0, 0};
    const auto one = chain_partition::search_pipedream(alike, options, {{options.levels.front()}});
    REQUIRE((plain && one));
    CHECK(one->seconds == doctest::Approx(plain->seconds).epsilon(1e-12));
    check_devices(one->stages, 6, true);
  }
}

namespace {

/// Servers of two devices, of two types, for a chain without messages: an independent copy of the released formula.
struct Servers {
  std::vector<std::vector<double>> seconds;  ///< [type][layer]
  std::vector<double> parameters;
  double inside, between;  ///< Bytes a second.

  double inside_one(std::size_t type, std::size_t from, std::size_t to) const {
    const auto sum = [&](const std::vector<double>& values, std::size_t a, std::size_t b) {
      double total = 0;
      for (std::size_t l = a; l < b; ++l) total += values[l];
      return total;
    };
    const std::vector<double>& layer_seconds = seconds[type];
    double best = (sum(layer_seconds, from, to) + 4.0 / (inside * 2) * sum(parameters, from, to)) / 2;
    for (std::size_t cut = from + 1; cut < to; ++cut)
      best = std::min(best, std::max(sum(layer_seconds, from, cut), sum(layer_seconds, cut, to)));
    return best;
  }

  double best(std::size_t from, int left_of_first, int left_of_second) const {
    if (from == parameters.size()) return left_of_first + left_of_second == 0 ? 0 : kInfinity;
    double shortest = kInfinity, weights = 0;
    for (std::size_t to = from + 1; to <= parameters.size(); ++to) {
      weights += parameters[to - 1];
      for (const int type : {0, 1})
        for (int r = 1; r <= (type == 0 ? left_of_first : left_of_second); ++r) {
          const double reduce = 4.0 * (r - 1) / r * weights / between / (from == 0 ? 2 : 1);
          const double stage_time = (inside_one(type, from, to) + reduce) / r;
          shortest = std::min(shortest, std::max(stage_time, best(to, left_of_first - (type == 0 ? r : 0),
                                                                  left_of_second - (type == 1 ? r : 0))));
        }
    }
    return shortest;
  }
};

}  // namespace

TEST_CASE("pipedream on servers of two types finds the best of all plans, on 100 random chains") {
  Rng rng(26, "servers");
  int possible = 0;
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    const int layers = rng.integer(2, 6), first = rng.integer(1, 2), second = rng.integer(1, 2);
    Servers servers{{{}, {}}, {}, rng.uniform(5, 20), rng.uniform(1, 5)};
    std::vector<std::vector<chain_partition::LayerAmounts>> amounts(2);
    for (int l = 0; l < layers; ++l) {
      servers.parameters.push_back(rng.integer(0, 2) * rng.uniform(0, 2));
      for (std::size_t t = 0; t < 2; ++t) {
        servers.seconds[t].push_back(rng.uniform(0.2, 1 + static_cast<double>(t)));
        amounts[t].push_back({servers.seconds[t].back(), 0, servers.parameters.back()});
      }
    }
    chain_partition::MixedWork work;
    for (const auto& one : amounts)
      work.by_type.push_back(
          chain_partition::sum_up(one, test::random_graph(rng, layers, true), chain_partition::listed_cuts(layers)));
    for (int s = 0; s < first + second; ++s) work.type_of.push_back(s < first ? 0 : 1);
    chain_partition::PipeDreamOptions options;
    options.transfers = 0;
    options.levels = {{2, servers.inside}, {first + second, servers.between}};
    const std::vector<std::vector<chain_partition::Level>> inner(2, {options.levels.front()});
    const auto result = chain_partition::search_pipedream(work, options, inner);
    const double best = servers.best(0, first, second);
    REQUIRE(result.has_value() == (best < kInfinity));
    if (!result) continue;
    ++possible;
    CHECK(result->seconds == doctest::Approx(best).epsilon(1e-12));
    check_devices(result->stages, 2 * (first + second), true);
  }
  CHECK(possible > 60);
}

namespace {

std::vector<chain_partition::PiperInput> random_piper(Rng& rng, int types, int devices) {
  chain_partition::PiperInput input;
  const int layers = rng.integer(1, 4);
  input.graph = test::random_graph(rng, layers, rng.integer(0, 1) == 0);
  input.devices = devices;
  input.micro_batches = rng.integer(1, 6);
  input.bandwidth = rng.uniform(1, 20);
  input.most_replicas = rng.integer(1, 4);
  input.whole_stages = true;
  for (int l = 0; l < layers; ++l) {
    chain_partition::PiperVariant plain{"plain", rng.uniform(0, 1), rng.uniform(0, 1), test::random_units(rng), {}, {}};
    for (std::size_t i = 0; i < input.graph.previous[l].size(); ++i) plain.in.push_back(rng.uniform(0, 1));
    for (std::size_t i = 0; i < input.graph.next[l].size(); ++i) plain.out.push_back(rng.uniform(0, 1));
    chain_partition::PiperVariant again = plain;
    again.seconds *= 1.3, again.memory.stash.value /= 4, again.memory.recompute_peak.value = rng.uniform(0, 2);
    input.layers.push_back({"l", {{1, {plain, again}}}});
  }
  std::vector<chain_partition::PiperInput> inputs;
  for (int t = 0; t < types; ++t) {
    inputs.push_back(input);
    inputs.back().memory = rng.uniform(0, 12);
    for (chain_partition::PiperLayer& layer : inputs.back().layers) {
      const double slower = rng.uniform(0.5, 3);
      for (chain_partition::PiperVariant& variant : layer.by_degree.at(1)) variant.seconds *= slower;
    }
  }
  return inputs;
}

/// Best of every cut, every choice of devices and both variants, written independently; `left` has the free devices of
/// each type, and `used` is the number that the rest must use.
double best_of_all(const std::vector<chain_partition::PiperInput>& inputs, const chain_partition::Cuts& cuts, int from,
                   std::vector<int> left, int used) {
  const chain_partition::PiperInput& first = inputs.front();
  if (from == cuts.count() - 1) return used == 0 ? 0 : kInfinity;
  double best = kInfinity;
  for (int to = from + 1; to < cuts.count(); ++to) {
    if (!cuts.contains(to, from)) continue;
    const std::vector<int> layers = cuts.layers_between(from, to);
    const auto inside = [&](int layer) { return std::find(layers.begin(), layers.end(), layer) != layers.end(); };
    for (const DeviceMix& mix : DeviceMixes(left).up_to(std::min(first.most_replicas, used))) {
      if (first.micro_batches % mix.devices != 0) continue;
      const int in_flight = std::min((used + mix.devices - 1) / mix.devices, first.micro_batches / mix.devices);
      std::vector<int> rest = left;
      for (std::size_t t = 0; t < rest.size(); ++t) rest[t] -= mix.of_type[t];
      const double rest_seconds = best_of_all(inputs, cuts, to, rest, used - mix.devices);
      for (const std::size_t v : {std::size_t{0}, std::size_t{1}}) {
        double slowest = 0;
        bool fits = true;
        for (std::size_t t = 0; t < inputs.size(); ++t) {
          if (mix.of_type[t] == 0) continue;
          double seconds = 0, bytes = 0, parameters = 0, memory = 0, in_turn = 0;
          for (const int l : layers) {
            const chain_partition::PiperVariant& variant = inputs[t].layers[l].by_degree.at(1)[v];
            seconds += variant.seconds, parameters += variant.parameters;
            memory += variant.memory.stash.value * in_flight + variant.memory.weights.value;
            in_turn = std::max(in_turn, variant.memory.recompute_peak.value);
            for (std::size_t e = 0; e < variant.in.size(); ++e)
              if (!inside(first.graph.previous[l][e])) bytes += 2 * variant.in[e];
            for (std::size_t e = 0; e < variant.out.size(); ++e)
              if (!inside(first.graph.next[l][e])) bytes += 2 * variant.out[e];
          }
          const double d = mix.devices;
          slowest = std::max(slowest, (seconds + bytes / first.bandwidth) / d +
                                          4 * (d - 1) / d * parameters / first.micro_batches / first.bandwidth);
          fits = fits && memory + in_turn <= inputs[t].memory;
        }
        if (fits) best = std::min(best, std::max(rest_seconds, slowest));
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("piper on several types finds the best of all plans, on 400 random models") {
  Rng rng(24, "mixed piper");
  int feasible = 0, infeasible = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const int types = rng.integer(1, 3);
    std::vector<int> counts;
    int devices = 0;
    for (int t = 0; t < types; ++t) counts.push_back(rng.integer(1, types == 3 ? 1 : 2)), devices += counts.back();
    const std::vector<chain_partition::PiperInput> inputs = random_piper(rng, types, devices);
    const chain_partition::Cuts cuts = chain_partition::all_cuts(inputs.front().graph, 1000);
    double best = kInfinity;
    for (int used = 1; used <= devices; ++used) best = std::min(best, best_of_all(inputs, cuts, 0, counts, used));
    const auto result = chain_partition::search_piper(inputs, counts, cuts);
    REQUIRE(result.has_value() == (best != kInfinity));
    (result ? feasible : infeasible)++;
    if (!result) continue;
    CHECK(result->seconds == doctest::Approx(best).epsilon(1e-12));
    if (types > 1) continue;
    const auto plain = chain_partition::search_piper(inputs.front(), cuts);
    REQUIRE(plain);
    CHECK(plain->seconds == doctest::Approx(result->seconds).epsilon(1e-12));
  }
  CHECK(feasible > 150);
  CHECK(infeasible > 30);
}

}  // namespace stagecraft::mixed_types_test
