// The planner `brute`: tries every division of the layers into stages and replicas by PipeDream's costs on one level,
// as a check of `pipedream`; chain_partition/brute.cpp has the search.

#include "sim/planners/chain_partition/pipedream.hpp"
#include "sim/planners/chain_partition/planning.hpp"

namespace stagecraft::planners {
namespace {

constexpr std::int64_t kMostDivisions = 5'000'000;

const config::MapSpec kBruteFields{"Every division into stages and replicas, by PipeDream's costs on one level.",
                                   chain_partition::pipedream_fields()};

Planned plan_brute(const PlannerInput& input) {
  const std::vector<DeviceId> devices = chain_partition::devices_of(input);
  const chain_partition::Types types = chain_partition::types_of(input.cluster, devices);
  const chain_partition::WorkInUnit in_unit = chain_partition::workload_of(input, types);
  chain_partition::PipeDreamOptions options = chain_partition::pipedream_rules(input);
  options.levels = {
      {static_cast<int>(devices.size()), in_unit.unit.rate(chain_partition::flat_bandwidth(input, devices))}};
  const auto pipeline = chain_partition::search_all(in_unit.mixed, options, kMostDivisions);
  if (!pipeline) chain_partition::refuse(input, in_unit.mixed.by_type.front(), devices.size());
  Planned result = chain_partition::planned(input, in_unit, *pipeline, devices);
  result.model_limit = result.predicted;
  result.limit_reason = "every division was looked at";
  return result;
}

}  // namespace

extern const PlannerDef brute{
    .name = "brute",
    .summary = "Tries every division into stages and replicas; for small models, and to check other planners.",
    .source = "PipeDream's costs (Narayanan et al., SOSP 2019), no pruning",
    .fields = &kBruteFields,
    .plan = plan_brute,
    .read = chain_partition::read_pipedream,
};

}  // namespace stagecraft::planners
