#include "sim/plan/msr/brute.hpp"
#include "sim/plan/msr/planning.hpp"

namespace stagecraft::planners {
namespace {

constexpr std::int64_t kMostDivisions = 5'000'000;

const config::MapSpec kBruteFields{"Every division into stages and replicas, by PipeDream's costs on one level.",
                                   msr::pipedream_fields()};

Planned plan_brute(const PlannerInput& input) {
  const std::vector<DeviceId> devices = msr::devices_of(input);
  const msr::Types types = msr::types_of(input.cluster, devices);
  const msr::WorkInUnit work = msr::workload_of(input, types);
  msr::PipeDreamOptions options = msr::pipedream_rules(input);
  options.levels = {{static_cast<int>(devices.size()), work.unit.rate(msr::flat_bandwidth(input, devices))}};
  const auto pipeline = msr::search_all(work.work, options, kMostDivisions);
  if (!pipeline) msr::refuse(input, work.work.work.front(), devices.size());
  Planned result = msr::planned(input, work, *pipeline, devices);
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
    .read = msr::read_pipedream,
};

}  // namespace stagecraft::planners
