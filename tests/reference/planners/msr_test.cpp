// PipeDream's optimizer and Piper on the inputs that they ship, compared with the answers of the released code.

#include <doctest/doctest.h>

#include <map>
#include <unordered_set>

#include "sim/core/text.hpp"
#include "sim/planners/chain_partition/pipedream.hpp"
#include "sim/planners/chain_partition/piper_file.hpp"
#include "sim/planners/shared/planner.hpp"
#include "tests/reference/planners/inputs.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/planning.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::msr_test {
using test::ReferenceRow;

namespace {

constexpr int kMostCuts = 5000;
constexpr double kGiB = 1 << 30;

/// The states of the released optimizer, for one mini-batch of the profile scaled by `batch_scale`.
chain_partition::Workload workload(const std::string& name, double batch_scale) {
  const ModelGraph model = test::profile(name, 1);
  const Cluster cluster = test::bare_cluster(1);
  const CostTable costs(model, cluster);
  std::vector<chain_partition::LayerAmounts> amounts =
      chain_partition::amounts_of(costs, DeviceTypeId{0}, whole_samples(1));
  for (chain_partition::LayerAmounts& one : amounts) one.seconds *= batch_scale, one.output *= batch_scale;
  const Digraph graph = chain_partition::layer_graph(model);
  return chain_partition::sum_up(amounts, graph, chain_partition::cuts_after_first(graph, kMostCuts),
                                 chain_partition::Crossing::Frontier);
}

chain_partition::PipeDreamOptions options_of(const ReferenceRow& row) {
  chain_partition::PipeDreamOptions options;
  const std::vector<std::string> m = split(row.text("machines"), 'x'), b = split(row.text("bandwidths"), '/');
  for (std::size_t l = 0; l < m.size(); ++l) options.levels.push_back({std::stoi(m[l]), std::stod(b.at(l))});
  options.straight = row.text("straight") == "1";
  options.fewer = row.text("fewer") == "1";
  options.transfers = row.text("transfers").empty() ? 0 : 1 / row.number("transfers");
  if (!row.text("memory").empty()) options.memory = row.number("memory");
  return options;
}

/// One stage with all layers on all machines.
chain_partition::FoundStage data_parallel(const chain_partition::Workload& work,
                                          const chain_partition::PipeDreamOptions& options) {
  chain_partition::FoundStage stage{0, work.last(), {}};
  for (int m = 0; m < options.levels.front().machines; ++m) stage.devices.push_back(m);
  return stage;
}

}  // namespace

TEST_CASE("pipedream: every bottleneck equals the released optimizer's") {
  int compared = 0, unfinished = 0;
  for (const ReferenceRow& row : test::reference_rows("pipedream_optimizer.csv")) {
    const std::string name = row.text("model") + " " + row.text("setting");
    CAPTURE(row.line);
    const bool large =
        row.text("cpu_seconds").empty() ? row.text("error") == "stopped after 200 s" : row.number("cpu_seconds") > 10;
    if (large && !test::all_trials()) continue;
    const chain_partition::Workload work = workload(row.text("model"), row.number("batch_scale"));
    if (!row.text("states").empty()) CHECK(work.cuts.count() - 1 == row.integer("states"));
    const double start = test::thread_seconds();
    const auto pipeline = chain_partition::search_pipedream(work, options_of(row));
    const double took = test::thread_seconds() - start;
    REQUIRE(pipeline);
    if (row.text("seconds").empty()) {  // It stopped with an error, or after 200 s.
      if (took > 0.1)
        MESSAGE(name, ": ", pipeline->seconds, " s a mini-batch, found in ", took, " s; there ", row.text("error"));
      ++unfinished;
      continue;
    }
    CHECK(pipeline->seconds == doctest::Approx(row.number("seconds")).epsilon(1e-6));
    ++compared;
    if (const chain_partition::PipeDreamOptions options = options_of(row); options.levels.size() == 1)
      CHECK(chain_partition::period_of(work, {data_parallel(work, options)}, options) ==
            doctest::Approx(row.number("data_parallel_seconds")).epsilon(1e-6));
    const double theirs = row.number("cpu_seconds");
    if (theirs < 10) continue;
    MESSAGE(name, ": ", took, " s, there ", theirs, " s of CPU: ", theirs / took, " times faster");
    CHECK(took < theirs);
  }
  CHECK(compared >= (test::all_trials() ? 130 : 123));
  CHECK(unfinished >= (test::all_trials() ? 10 : 8));
}

TEST_CASE("pipedream: VGG-16 on 4 machines is cut where the released runtime cuts it") {
  const ModelGraph model = test::profile("vgg16", 128);
  const PlannerDef& def = get_from(planners::catalog(), "planner", "pipedream");
  const Cluster cluster = test::star(4, 1e9, 0);
  const config::Value options = test::checked("{micro_batch_size: 128}", *def.fields);
  const CostTable costs(model, cluster);
  const Planned planned = def.plan({model, cluster, costs, test::plan_spec(def, options, cluster), 4});
  REQUIRE(planned.plan.stage_count() == 2);
  CHECK(planned.plan.stages[StageId{0}].leaders.size() == 3);
  CHECK(planned.plan.stages[StageId{1}].leaders.size() == 1);
  // gpus=4 of runtime/image_classification/models/vgg16: nodes 2 to 18, and 19 to 41.
  CHECK(model.layers[planned.plan.stages[StageId{0}].shape.layers.back()].name == "node18");
  CHECK(model.layers[planned.plan.stages[StageId{1}].shape.layers.front()].name == "node19");
  CHECK(planned.predicted.value == doctest::Approx(0.205520896).epsilon(1e-9));
  CHECK(planned.model_limit == planned.predicted);
}

TEST_CASE("pipedream: choices equal those that Table 1 of the paper reports") {
  const auto gain = [&](const char* name, int machines, double bandwidth, bool straight) {
    const chain_partition::Workload work = workload(name, 1);
    chain_partition::PipeDreamOptions options;
    options.levels = {{machines, bandwidth}};
    options.straight = straight;
    return chain_partition::period_of(work, {data_parallel(work, options)}, options) /
           chain_partition::search_pipedream(work, options)->seconds;
  };
  // ResNet-50: data parallelism is chosen; here a pipeline would gain at most a tenth.
  CHECK(gain("resnet50", 16, 1.25e9, false) < 1.1);
  CHECK(gain("resnet50", 16, 3.125e9, false) < 1.1);
  // GNMT-16 on four GPUs with PCIe: a straight pipeline, 1.46 times as fast as data parallelism.
  CHECK(gain("gnmt_large", 4, 1.2e10, false) == gain("gnmt_large", 4, 1.2e10, true));
  CHECK(gain("gnmt_large", 4, 1.2e10, true) == doctest::Approx(1.46).epsilon(0.01));
}

TEST_CASE("pipedream: all cuts with real messages are never slower than the released code's") {
  const ModelGraph model = test::profile("gnmt", 1);
  const Digraph graph = chain_partition::layer_graph(model);
  const Cluster cluster = test::bare_cluster(1);
  chain_partition::PipeDreamOptions options;
  for (const int machines : {2, 4, 8}) {
    options.levels = {{machines, 1.2e10}};
    const auto amounts = chain_partition::amounts_of(CostTable(model, cluster), DeviceTypeId{0}, whole_samples(1));
    const auto any = chain_partition::search_pipedream(
        chain_partition::sum_up(amounts, graph, chain_partition::all_cuts(graph, kMostCuts)), options);
    const auto theirs = chain_partition::search_pipedream(
        chain_partition::sum_up(amounts, graph, chain_partition::cuts_after_first(graph, kMostCuts),
                                chain_partition::Crossing::Frontier),
        options);
    REQUIRE((any && theirs));
    CHECK(any->seconds <= theirs->seconds * (1 + 1e-12));
  }
}

namespace {

/// Inserts a copy of an inner transformer layer after itself, chosen as in the released code, which grows its input so.
void insert_layer(chain_partition::PiperInput& input) {
  const auto is_transformer = [&](int l) { return input.layers[l].name == "ParallelTransformerLayer"; };
  std::unordered_set<int> ids;
  for (int l = 0; l < input.graph.size(); ++l)
    if (is_transformer(l)) ids.insert(l);
  const auto neighbor = [&](const std::vector<int>& list) {
    const auto it = std::find_if(list.begin(), list.end(), is_transformer);
    return it == list.end() ? -1 : static_cast<int>(it - list.begin());
  };
  for (const int v : ids) {
    const auto l = static_cast<std::size_t>(v);
    const int in = neighbor(input.graph.previous[l]), out = neighbor(input.graph.next[l]);
    if (in < 0 || out < 0) continue;
    // The copy reads the layer alone, with what that one's inner edge costs, and is read by the layer's old reader.
    const int fresh = input.graph.size(), next = input.graph.next[l][out];
    chain_partition::PiperLayer copy = input.layers[l];
    for (auto& [degree, variants] : copy.by_degree)
      for (chain_partition::PiperVariant& variant : variants) {
        variant.in = {variant.in[in]};
        variant.out = {variant.out[out]};
      }
    input.layers.push_back(std::move(copy));
    input.graph.next[l][out] = fresh;
    auto& inputs = input.graph.previous[next];
    *std::find(inputs.begin(), inputs.end(), v) = fresh;
    input.graph.previous.push_back({v});
    input.graph.next.push_back({next});
    return;
  }
}

}  // namespace

// The released code lets the data degrees of all stages sum to the number of micro-batches at most, which costs
// something where there are more devices than that.
TEST_CASE("piper: every answer equals the released code's, or is better where that has too few micro-batches") {
  const chain_partition::PiperFile shipped = chain_partition::read_piper(test::piper_text(), "piper_input.json");
  CHECK(shipped.warnings.empty());
  int compared = 0;
  for (const ReferenceRow& row : test::reference_rows("piper_runs.csv")) {
    if (row.number("cpu_seconds") > 1 && !test::all_trials()) continue;
    chain_partition::PiperInput input = shipped.input;
    for (int layers = 32; layers < row.integer("layers"); ++layers) insert_layer(input);
    input.devices = row.integer("devices");
    input.memory = row.number("memory_GiB") * kGiB;
    input.bandwidth = 25 * kGiB;
    input.micro_batches = row.integer("micro_batches");
    const chain_partition::Cuts cuts = chain_partition::all_cuts(input.graph, kMostCuts);
    CHECK(cuts.count() == row.integer("cuts"));
    CAPTURE(row.line);
    const double start = test::thread_seconds();
    const auto check = [&](const chain_partition::PiperInput& problem, const std::string& expected) {
      const auto pipeline = chain_partition::search_piper(problem, cuts);
      REQUIRE(pipeline.has_value() == (expected != "1e+30"));
      if (!pipeline) return;
      const double theirs = std::stod(expected);
      if (problem.devices <= problem.micro_batches)
        CHECK(pipeline->seconds == doctest::Approx(theirs).epsilon(1e-8));
      else
        CHECK(pipeline->seconds <= theirs * (1 + 1e-8));
      ++compared;
    };
    check(input, row.text("seconds"));
    if (input.devices >= 512)
      MESSAGE(row.text("layers"), " layers, ", input.devices, " devices, ", row.text("memory_GiB"),
              " GiB: ", test::thread_seconds() - start, " s, there ", row.text("cpu_seconds"), " s of CPU");
    chain_partition::PiperInput no_data = input, no_tensor = input, no_recompute = input;
    no_data.most_replicas = 1;
    for (chain_partition::PiperLayer& layer : no_tensor.layers) layer.by_degree = {{1, layer.by_degree.at(1)}};
    for (chain_partition::PiperLayer& layer : no_recompute.layers)
      for (auto& [degree, variants] : layer.by_degree) variants.resize(1);
    check(no_data, row.text("without_data"));
    check(no_tensor, row.text("without_tensor"));
    check(no_recompute, row.text("without_recomputation"));
  }
  CHECK(compared >= (test::all_trials() ? 60 : 30));
}

TEST_CASE("piper: shipped profiles in milliseconds are detected") {
  for (const char* name : {"gnmt_large", "resnet50", "vgg16", "alexnet"}) {
    CAPTURE(name);
    const ModelGraph model = test::profile(name, 1);
    const auto as_piper = [&](double unit) {
      std::string nodes, edges;
      const Digraph graph = chain_partition::layer_graph(model);
      const auto table = [](const std::vector<int>& others) {
        std::string text;
        for (const int other : others) text += (text.empty() ? "\"" : ", \"") + std::to_string(other) + "\": 0";
        return "{" + text + "}";
      };
      for (const LayerId l : model.layers.ids()) {
        const Layer& layer = model.layers[l];
        const LayerTimes& times = *layer.times;
        const Seconds time = times.forward + times.input_gradient + times.weight_gradient;
        nodes += (nodes.empty() ? "" : ", ") + std::string("{\"id\": ") + std::to_string(l.value) +
                 ", \"TMPCs\": {\"1\": [{\"id\": \"vanilla\", \"timePerSample\": " + shortest(time.value * unit) +
                 ", \"parameterSize\": " + shortest(layer.parameters * 4) + ", \"memoryUsageA\": 1, " +
                 "\"memoryUsageB\": 1, \"syncTimeFw\": " + table(graph.previous[l.value]) +
                 ", \"syncTimeBw\": " + table(graph.next[l.value]) + "}]}}";
        for (const LayerId from : layer.inputs)
          edges += (edges.empty() ? "" : ", ") + std::string("{\"sourceId\": ") + std::to_string(from.value) +
                   ", \"destId\": " + std::to_string(l.value) +
                   ", \"communicationCost\": " + shortest(model.layers[from].output.value) + "}";
      }
      return chain_partition::read_piper(
          "{\"maxDevices\": 8, \"maxMemoryPerDevice\": 8e10, \"bandwidth\": 2.5e10, \"mbsInBatch\": " +
              std::string("256, \"nodes\": [") + nodes + "], \"edges\": [" + edges + "]}",
          "made.json");
    };
    CHECK(as_piper(1).warnings.empty());
    CHECK(as_piper(1000).warnings.size() == 1);
  }
}

}  // namespace stagecraft::msr_test
