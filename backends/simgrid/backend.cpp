// The catalog entry `simgrid`: finds routes, simulates in a child process and returns a Timeline.

#include <vector>

#include "backends/backend.hpp"
#include "backends/des/routes.hpp"
#include "backends/simgrid/sandbox.hpp"
#include "backends/simgrid/simulate.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::backends {
namespace {

std::string why_not() {
  try {
    sg::library_version();
    return {};
  } catch (const BackendError& error) {
    return error.what();
  }
}

Timeline run(const Program& program, const Cluster& cluster, const RunOptions& options) {
  if (cluster.has_one_queue())
    throw InputError("simgrid shares links fairly, and a link has `queue: fifo`",
                     "--backend fluid simulates its queue, and stagecraft validate --simulator fluid");
  const std::vector<Route> routes = des::routes_of(program, cluster);
  sg::load_library();  // Here, and not in each child.
  const std::size_t size = program.size();
  const sg::SharedMemory memory(2 * size * sizeof(double));
  const std::span<double> start = memory.as<double>().first(size), end = memory.as<double>().last(size);
  sg::run_in_child([&] { sg::simulate(program, cluster, routes, start, end); }, options.timeout);

  Timeline timeline;
  timeline.clock = Clock::Simulated;
  timeline.start.assign(start.begin(), start.end());
  timeline.end.assign(end.begin(), end.end());
  timeline.provenance.backend = "simgrid";
  timeline.provenance.backend_version = sg::library_version();
  timeline.provenance.seed = options.seed;
  return timeline;
}

}  // namespace

extern const BackendDef simgrid;
const BackendDef simgrid{
    .name = "simgrid",
    .summary = "contention: SimGrid shares every link among the transfers that cross it (max-min)",
    .source = "Casanova et al., Versatile, scalable and accurate simulation of distributed applications, JPDC 2014",
    .clock = Clock::Simulated,
    .version = sg::library_version,
    .why_not = why_not,
    .run = run,
    .built_with = STAGECRAFT_SIMGRID_VERSION,
};

}  // namespace stagecraft::backends
