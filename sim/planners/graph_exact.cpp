// The planner `graph-exact`: the shortest iteration of all graphs of stages, or of all sequences, (m - 1) times the
// slowest stage and once the longest path. Exhaustive for small graphs, or with chains to fuse and equal branches; if
// the search gives up, the answer is GraphPipe's partition with a bound that holds for every plan.

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/planners/chain_partition/planning.hpp"
#include "sim/planners/graph/coarsen.hpp"
#include "sim/planners/graph/exact.hpp"
#include "sim/planners/graph/partition.hpp"
#include "sim/planners/graph/planning.hpp"

namespace stagecraft::planners {
namespace {

config::MapSpec graph_exact_fields() {
  config::MapSpec spec{"The best of all graphs of stages.", graph::common_fields()};
  spec.fields.push_back(config::boolean("sequential")
                            .fallback("false")
                            .doc("Whether the stages form a chain; the search then finds the best chain."));
  spec.fields.push_back(config::integer("blocks", 1, 1e6)
                            .optional()
                            .doc("Layers in chains are fused, fastest neighbors first, until at most this number of "
                                 "blocks remains. Default: no layers are fused."));
  spec.fields.push_back(config::integer("states", 1, 1e12)
                            .fallback("2e7")
                            .doc("Most stages and partial plans that the search examines before it gives up."));
  return spec;
}

const config::MapSpec kGraphExactFields = graph_exact_fields();

PlannerOptions read_graph_exact_options(const config::Value& checked, const Cluster&) {
  auto most_blocks = std::make_shared<std::optional<int>>();
  if (const config::Value* blocks = checked.find("blocks")) *most_blocks = config::as_int(*blocks);
  return most_blocks;
}

constexpr std::int64_t kMostSteps = 200'000'000;  // Some seconds.

/// GraphPipe's partition with its iteration or bottleneck; nothing if it does not fit into memory as a sequence.
std::optional<graph::Partition> feasible_partition(const graph::GraphProblem& p, const graph::ExactOptions& options) {
  const auto division = graph::partition(p, kMostSteps);
  if (!division) return {};
  const graph::PartitionFigures figures = graph::figures_of(p, division->parts, options.sequential);
  if (!figures.fits) return {};
  const double iteration = graph::iteration_of(p, figures.bottleneck, figures.path);
  return graph::Partition{division->parts, options.bottleneck ? figures.bottleneck : iteration, division->states};
}

/// The best partition, or GraphPipe's where the search would be too long; `heuristic` then says why. GraphPipe's is an
/// upper bound for the search.
std::optional<graph::Partition> best_partition(const graph::GraphProblem& p, graph::ExactOptions options,
                                               std::string& heuristic) {
  constexpr double kRounding = 1 + 1e-9;
  if (p.unit > 1) {
    heuristic = graph::units_text(p);
    return feasible_partition(p, options);
  }
  std::optional<graph::Partition> feasible;
  try {
    feasible = feasible_partition(p, options);
    if (feasible) options.incumbent = feasible->value * kRounding;
  } catch (const Infeasible&) {  // Its search is too long. The exact one may still be short.
  }
  try {
    return graph::search_exact(p, options);
  } catch (const Infeasible& e) {
    if (!feasible) throw;
    heuristic = "GraphPipe's stages, because the exact search gave up: " + e.problem().message;
    return feasible;
  }
}

/// Time of a micro-batch in the steady state, and its limit. Iterations of forwards alone follow each other without a
/// drain, so their slowest stage is the period.
void set_prediction(const PlannerInput& input, const graph::GraphPlanInput& plan_input,
                    const graph::ExactOptions& options, const std::vector<graph::GraphStage>& parts, double value,
                    const std::string& searched, Planned& result) {
  const graph::GraphProblem& p = plan_input.problem;
  const CommonUnit& unit = plan_input.unit;
  result.limit_reason = searched + " was exhaustive";
  if (input.trains) {
    result.predicted = result.model_limit = {unit.seconds(value / p.micro_batches)};
    return;
  }
  result.predicted = result.model_limit = {unit.seconds(graph::figures_of(p, parts, options.sequential).bottleneck)};
  if (options.bottleneck) return;
  result.model_limit = {unit.seconds(graph::least_bottleneck(p))};
  result.limit_reason = "all work shared evenly, or the longest layer alone; " + searched + " was for latency";
}

Planned plan_exactly(const PlannerInput& input) {
  const graph::GraphPlanInput plan_input = graph::plan_input_of(input);
  const bool sequential = input.options.sequential;
  const std::optional<int> blocks = input.options.options<std::optional<int>>();
  const graph::GraphProblem& p = plan_input.problem;
  const graph::Coarse coarse = graph::fuse_chains(p, blocks.value_or(p.size()));
  graph::ExactOptions options;
  options.sequential = sequential;
  options.bottleneck = !input.trains && input.micro_batches > 1;  // One micro-batch: the least latency.
  options.most_states = *input.options.effort;
  std::string heuristic;
  const auto division = best_partition(coarse.problem, options, heuristic);
  if (!division)
    graph::refuse(input, plan_input, blocks ? "stages of these blocks" : "stages",
                  blocks ? "more `blocks`, devices or memory, or smaller micro-batches"
                         : "more devices or memory, or smaller micro-batches");

  std::vector<graph::GraphStage> parts = graph::in_layers(coarse, division->parts);
  if (!sequential) parts = graph::branch_by_branch(p, parts);
  Planned result = graph::planned(input, plan_input, parts, sequential);
  const bool fine = coarse.problem.size() == p.size();
  const std::string searched = fine ? "the search" : "the search over " + pluralize(coarse.problem.size(), "block");
  set_prediction(input, plan_input, options, parts, division->value, searched, result);
  result.limit_reason = graph::reason_for(plan_input, result.limit_reason);
  if (!heuristic.empty()) set_heuristic(result, input, heuristic);
  chain_partition::note_idle_devices(result, input);
  result.states = division->states;
  return result;
}

}  // namespace

extern const PlannerDef graph_exact{
    .name = "graph-exact",
    .summary =
        "The graph or sequence of stages with the shortest iteration, on devices of up to four types. Exact if "
        "the search ends within `states`; else GraphPipe's stages, and the answer says so.",
    .source = "ideals: Tarnawski et al., NeurIPS 2020; in flight: Jeon et al., GraphPipe, ASPLOS 2025",
    .fields = &kGraphExactFields,
    .plan = plan_exactly,
    .read = read_graph_exact_options,
};

}  // namespace stagecraft::planners
