// Piper's search compared with an exhaustive search over the plans of small random models, and its files.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/numbers.hpp"
#include "sim/planners/chain_partition/piper_file.hpp"
#include "tests/sim/planners/random_graph.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::piper_search_test {
namespace {

chain_partition::PiperInput random_piper(Rng& rng) {
  chain_partition::PiperInput input;
  const int layers = rng.integer(2, 4);
  input.graph = test::random_graph(rng, layers, rng.integer(0, 1) == 0);
  input.devices = rng.integer(1, 5);
  input.micro_batches = rng.integer(1, 6);
  input.memory = rng.uniform(0, 20);
  input.bandwidth = rng.uniform(1, 20);
  for (std::size_t l = 0; l < static_cast<std::size_t>(layers); ++l) {
    chain_partition::PiperLayer layer;
    for (const int degree : {1, 2}) {
      if (degree == 2 && rng.integer(0, 3) == 0) continue;
      chain_partition::PiperVariant plain{
          "plain", rng.uniform(0, 1) / degree, rng.uniform(0, 1) / degree, test::random_units(rng), {}, {}};
      for (std::size_t i = 0; i < input.graph.previous[l].size(); ++i) plain.in.push_back(rng.uniform(0, 1));
      for (std::size_t i = 0; i < input.graph.next[l].size(); ++i) plain.out.push_back(rng.uniform(0, 1));
      chain_partition::PiperVariant again = plain;
      again.name = "again", again.seconds *= 1.3, again.memory.stash.value /= 4;
      layer.by_degree[degree] = {plain, again};
    }
    input.layers.push_back(std::move(layer));
  }
  return input;
}

/// Time and memory of a stage, written independently.
struct Price {
  double seconds = 0, memory = 0;
};
Price price_of(const chain_partition::PiperInput& input, const chain_partition::Cuts& cuts,
               const chain_partition::PiperStage& stage, int degrees) {
  Price price;
  const std::vector<int> layers = cuts.layers_between(stage.from, stage.to);
  const auto inside = [&](int layer) { return std::find(layers.begin(), layers.end(), layer) != layers.end(); };
  // A replica never has more in flight than its share of the micro-batches.
  const int in_flight = std::min((degrees + stage.data - 1) / stage.data, input.micro_batches / stage.data);
  double in_turn = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto l = static_cast<std::size_t>(layers[i]);
    const chain_partition::PiperVariant& v = input.layers[l].by_degree.at(stage.tensor)[stage.variants[i]];
    price.seconds += v.seconds / stage.data;
    price.seconds += 4.0 * (stage.data - 1) / stage.data * v.parameters / input.micro_batches / input.bandwidth;
    for (std::size_t e = 0; e < v.in.size(); ++e)
      if (!inside(input.graph.previous[l][e])) price.seconds += 2 * v.in[e] / stage.data / input.bandwidth;
    for (std::size_t e = 0; e < v.out.size(); ++e)
      if (!inside(input.graph.next[l][e])) price.seconds += 2 * v.out[e] / stage.data / input.bandwidth;
    price.memory += v.memory.stash.value * in_flight + v.memory.weights.value;
    in_turn = std::max(in_turn, v.memory.recompute_peak.value);
  }
  price.memory += in_turn;
  return price;
}

/// The best time over every cut, degree and variant.
double best_of_all(const chain_partition::PiperInput& input, const chain_partition::Cuts& cuts, int from, int degrees,
                   int devices) {
  if (from == cuts.count() - 1) return degrees == 0 ? 0 : kInfinity;
  double best = kInfinity;
  for (int to = from + 1; to < cuts.count(); ++to) {
    if (!cuts.contains(to, from)) continue;
    const std::size_t layers = cuts.layers_between(from, to).size();
    for (int tensor = 1; tensor <= 2; ++tensor)
      for (int data = 1; data <= degrees && tensor * data <= devices; ++data) {
        const std::vector<int> members = cuts.layers_between(from, to);
        if (input.micro_batches % data != 0 || std::any_of(members.begin(), members.end(), [&](int l) {
              return input.layers[l].by_degree.count(tensor) == 0;
            }))
          continue;
        const double rest = best_of_all(input, cuts, to, degrees - data, devices - tensor * data);
        for (unsigned choice = 0; choice < 1U << layers; ++choice) {
          if (input.whole_stages && choice != 0 && choice + 1 != 1U << layers) continue;
          chain_partition::PiperStage stage{from, to, tensor, data, {}, 0};
          for (std::size_t l = 0; l < layers; ++l) stage.variants.push_back(static_cast<int>(choice >> l & 1));
          const Price price = price_of(input, cuts, stage, degrees);
          if (price.memory <= input.memory) best = std::min(best, std::max(rest, price.seconds));
        }
      }
  }
  return best;
}

}  // namespace

TEST_CASE("piper finds the best of all plans, on 400 random models") {
  Rng rng(13, "piper");
  int feasible = 0, infeasible = 0, exact = 0, layered = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    chain_partition::PiperInput input = random_piper(rng);
    input.whole_stages = round % 2 == 0;
    for (chain_partition::PiperLayer& layer : input.layers)
      for (auto& [degree, variants] : layer.by_degree)
        if (input.whole_stages) variants.back().memory.recompute_peak.value = rng.uniform(0, 2);
    const chain_partition::Cuts cuts = chain_partition::all_cuts(input.graph, 1000);
    double best = kInfinity;
    for (int degrees = 1; degrees <= input.devices; ++degrees)
      best = std::min(best, best_of_all(input, cuts, 0, degrees, input.devices));
    const auto result = chain_partition::search_piper(input, cuts);
    REQUIRE(result.has_value() == (best != kInfinity));
    (result ? feasible : infeasible)++;
    if (!result) continue;
    // Layers alone change byte for byte, the cheapest first, which need not be the best set of them.
    CHECK(result->seconds >= best * (1 - 1e-12));
    if (input.whole_stages) CHECK(result->seconds <= best * (1 + 1e-12));
    exact += !input.whole_stages && result->seconds <= best * (1 + 1e-12);
    layered += !input.whole_stages;

    int degrees = 0, devices = 0;
    for (const chain_partition::PiperStage& stage : result->stages)
      degrees += stage.data, devices += stage.data * stage.tensor;
    CHECK(devices <= input.devices);
    double slowest = 0;
    for (const chain_partition::PiperStage& stage : result->stages) {
      const Price price = price_of(input, cuts, stage, degrees);
      CHECK(price.memory <= input.memory * (1 + 1e-12));
      CHECK(stage.memory == doctest::Approx(price.memory).epsilon(1e-12));
      slowest = std::max(slowest, price.seconds);
      degrees -= stage.data;
    }
    CHECK(slowest == doctest::Approx(result->seconds).epsilon(1e-12));
  }
  MESSAGE(feasible, " feasible, ", infeasible, " not; with a choice for each layer ", exact, " of ", layered,
          " optimal");
  CHECK(feasible > 100);
  CHECK(infeasible > 30);
  CHECK(exact * 10 > layered * 9);
}

TEST_CASE("piper's files: both names of edges are read; wrong units and missing fields are reported") {
  const auto file = [](const std::string& time, const std::string& sync) {
    return R"({"maxDevices": 2, "maxMemoryPerDevice": 1e9, "bandwidth": 1e9, "mbsInBatch": 4, "nodes": [
      {"id": 7, "name": "a", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": )" +
           time + R"(, "parameterSize": 1e8,
        "memoryUsageA": 1, "memoryUsageB": 2, "syncTimeFw": {}, "syncTimeBw": {"3": 5}}]}},
      {"id": 3, "name": "a", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 0.01, "parameterSize": 1e8,
        "memoryUsageA": 1, "memoryUsageB": 2, "syncTimeFw": {)" +
           sync + R"(}, "syncTimeBw": {}}]}}],
      "edges": [{"sourceId": 7, "destId": 3, "communicationCost": 100}]})";
  };
  const chain_partition::PiperFile read = chain_partition::read_piper(file("0.02", "\"7\": 11"), "a.json");
  CHECK(read.warnings.empty());
  CHECK(read.input.layers[0].by_degree.at(1)[0].out == std::vector<double>{105});
  CHECK(read.input.layers[1].by_degree.at(1)[0].in == std::vector<double>{111});
  CHECK(read.input.micro_batches == 4);
  const chain_partition::PiperFile slow = chain_partition::read_piper(file("20", "\"7\": 11"), "a.json");
  REQUIRE(slow.warnings.size() == 1);
  CHECK(slow.warnings[0].find("are the times milliseconds?") != std::string::npos);
  CHECK(test::input_error_of([&] {
          chain_partition::read_piper(file("0.02", ""), "a.json");
        }).find("node 7 is missing") != std::string::npos);
  CHECK(test::input_error_of([&] {
          chain_partition::read_piper(file("-1", "\"7\": 11"), "a.json");
        }).find("timePerSample") != std::string::npos);
  CHECK(test::input_error_of([&] {
          chain_partition::read_piper(file("0.02", "\"7\": 11, \"3\": 1"), "a.json");
        }).find("no edge with") != std::string::npos);
  CHECK(test::input_error_of([&] { chain_partition::read_piper("{}", "a.json"); }).find("mbsInBatch") !=
        std::string::npos);
}

TEST_CASE("piper: with one variant of each layer, sums over whole stages give the answer of choices for each layer") {
  Rng rng(23, "piper, one variant");
  int feasible = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    chain_partition::PiperInput input = random_piper(rng);
    for (chain_partition::PiperLayer& layer : input.layers)
      for (auto& [degree, variants] : layer.by_degree) variants.resize(1);
    const chain_partition::Cuts cuts = round % 3 == 0 ? chain_partition::listed_cuts(input.graph.size())
                                                      : chain_partition::all_cuts(input.graph, 1000);
    const auto layered = chain_partition::search_piper(input, cuts);
    input.whole_stages = true;
    const auto whole = chain_partition::search_piper(input, cuts);
    REQUIRE(whole.has_value() == layered.has_value());
    if (!whole) continue;
    ++feasible;
    CHECK(whole->seconds == doctest::Approx(layered->seconds).epsilon(1e-12));
  }
  CHECK(feasible > 100);
}

TEST_CASE("piper: evenly spaced cuts have about the same work between them, and the first and the last cut") {
  const auto sizes = [](const std::vector<double>& weights, int count) {
    const chain_partition::Cuts spaced =
        chain_partition::evenly_spaced(chain_partition::listed_cuts(static_cast<int>(weights.size())), weights, count);
    std::vector<int> layers;
    for (int cut = 0; cut < spaced.count(); ++cut) layers.push_back(spaced.size_of(cut));
    return layers;
  };
  CHECK(sizes(std::vector<double>(10, 1), 5) == std::vector{0, 2, 4, 6, 8, 10});
  CHECK(sizes({6, 1, 1, 1, 1, 2}, 4) == std::vector{0, 1, 4, 6});  // The first layer has two quarters of the work.
  CHECK(sizes({1, 1}, 2) == std::vector{0, 1, 2});
}

TEST_CASE("piper: a search with too many stages is refused before it starts") {
  chain_partition::PiperInput input;
  input.graph = Digraph(3000);
  input.layers.resize(3000);
  input.devices = input.micro_batches = 4;
  CHECK_THROWS_AS(chain_partition::search_piper(input, chain_partition::listed_cuts(3000)), Infeasible);
}

}  // namespace stagecraft::piper_search_test
