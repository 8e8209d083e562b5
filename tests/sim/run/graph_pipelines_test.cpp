// Graphs of stages against the best sequences, in the settings of GraphPipe's figure 6: what scenarios/papers/graphpipe
// says.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/run/run.hpp"
#include "sim/schedule/in_flight.hpp"

using namespace stagecraft;

namespace {

struct Setting {
  std::string name;
  std::vector<std::string> sequence;     ///< What makes the sequence of it.
  double by_graph = 0, by_sequence = 0;  ///< Samples a second.
};

std::vector<std::string> sequence(int size, int micro_batches) {
  return {"plan.sequential=true", "plan.micro_batch_size=" + std::to_string(size),
          "run.micro_batches=" + std::to_string(micro_batches)};
}

double samples_a_second(const Scenario& scenario, const Prepared& p) {
  return p.plan.mini_batch / run(scenario, p, "ideal").report.period.value;
}

}  // namespace

TEST_CASE("graph pipelines: throughput of graphs and sequences on 4 and 8 GPUs of Summit") {
  const std::vector<Setting> settings = {{"mmt-4", sequence(2, 32), 212, 200},
                                         {"mmt-8", sequence(4, 32), 402, 384},
                                         {"dlrm-4", sequence(64, 8), 9391, 8359},
                                         {"dlrm-8", sequence(64, 16), 15112, 11983},
                                         {"candle-uno-4", sequence(64, 8), 15997, 14759},
                                         {"candle-uno-8", sequence(128, 8), 30590, 27281}};
  for (const Setting& setting : settings) {
    CAPTURE(setting.name);
    const std::string file = "scenarios/papers/graphpipe/" + setting.name + ".yaml";
    const Scenario graph = load_scenario(file, {}), chain = load_scenario(file, setting.sequence);
    const Prepared by_graph = prepare(graph), by_chain = prepare(chain);
    CHECK(std::round(samples_a_second(graph, by_graph)) == setting.by_graph);
    CHECK(std::round(samples_a_second(chain, by_chain)) == setting.by_sequence);
  }
}

TEST_CASE("graph pipelines: what is in flight is the micro-batches that the planners reckoned with") {
  for (const char* planner : {"graphpipe", "graph-exact"}) {
    CAPTURE(planner);
    const Scenario scenario = load_scenario(
        "scenarios/papers/graphpipe/mmt-8.yaml",
        {std::string("plan={micro_batch_size: 8, planner: ") + planner + (planner[5] == '-' ? ", blocks: 17}" : "}")});
    const Prepared p = prepare(scenario);
    const std::vector<int> depth = depth_to_sink(p.plan.graph()), samples = in_flight_samples(p.plan);
    Bytes most;
    for (std::size_t s = 0; s < depth.size(); ++s) {
      const int in_flight = std::min(depth[s], scenario.micro_batches);
      CHECK(samples[s] == 8 * in_flight);
      for (const StageCost& cost : p.costs[s])
        most = std::max(most, cost.weights + cost.gradients + cost.optimizer + cost.stash * in_flight);
    }
    CHECK(p.planned.memory.value == doctest::Approx(most.value).epsilon(1e-12));
    // Messages on their way and the inputs of the model come on top.
    CHECK(fullest_of(run(scenario, p, "ideal").report, p.cluster) >= most);
  }
}
