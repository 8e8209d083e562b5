#include "backends/backend.hpp"

#include "backends/des/routes.hpp"
#include "backends/fluid/simulate.hpp"
#include "sim/core/reserve.hpp"

namespace stagecraft::backends {
namespace {

Timeline run(const Program& program, const Cluster& cluster, const RunOptions& options) {
  const std::vector<Route> routes = des::routes_of(program, cluster);
  Timeline timeline;
  reserve_column(timeline.start, program.size());
  reserve_column(timeline.end, program.size());
  timeline.start.resize(program.size());
  timeline.end.resize(program.size());
  fluid::simulate(program, cluster, routes, timeline.start, timeline.end, options.timeout);
  timeline.clock = Clock::Simulated;
  timeline.provenance.backend = "fluid";
  timeline.provenance.seed = options.seed;
  return timeline;
}

}  // namespace

extern const BackendDef fluid;
const BackendDef fluid{
    .name = "fluid",
    .summary = "contention: every link shared among the transfers that cross it (max-min), for thousands of devices",
    .source = "Bertsekas and Gallager, Data Networks, 1992, 6.5.2",
    .clock = Clock::Simulated,
    .version = [] { return std::string(); },
    .why_not = [] { return std::string(); },
    .run = run,
};

}  // namespace stagecraft::backends
