// Graphs of stages in the settings of GraphPipe's figure 6; scenarios/papers/graphpipe/published.yaml has their speed.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/experiment/run.hpp"
#include "sim/schedule/in_flight.hpp"

namespace stagecraft::graph_pipelines_test {

TEST_CASE("graph pipelines: a run has as many micro-batches in flight as the planners assumed") {
  for (const char* planner : {"graphpipe", "graph-exact"}) {
    CAPTURE(planner);
    const Experiment scenario =
        load_experiment("scenarios/papers/graphpipe/mmt-8.yaml",
                        // Planners of graphs do not count the fp32 gradient of a backward that software keeps.
                        {"software=none", std::string("plan={micro_batch_size: 8, planner: ") + planner +
                                              (planner[5] == '-' ? ", blocks: 17}" : "}")});
    const CompiledExperiment p = compile(scenario);
    const std::vector<int> depth = depth_to_sink(p.plan.graph());
    const IdVector<StageId, int> samples = in_flight_samples(p.plan);
    Bytes largest;
    for (const StageId s : samples.ids()) {
      const int in_flight = std::min(depth[s.value], scenario.run.micro_batches);
      CHECK(samples[s] == 8 * in_flight);
      for (const StageCost& cost : p.costs.replicas(s))
        largest = std::max(largest, stage_memory(cost.memory, in_flight).total());
    }
    CHECK(p.report.memory.value == doctest::Approx(largest.value).epsilon(1e-12));
    // Messages on their way and the inputs of the model come on top.
    CHECK(fullest_device_memory(run(p, "ideal").report, p.cluster()) >= largest);
  }
}

}  // namespace stagecraft::graph_pipelines_test
