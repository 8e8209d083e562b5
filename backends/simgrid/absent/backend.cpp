// The catalog entry `simgrid` in a build without SimGrid, which says what to install.

#include "backends/backend.hpp"

#include "sim/core/diagnostic.hpp"

namespace stagecraft::backends {
namespace {

std::string why_not() {
  return "not built with SimGrid: install libsimgrid-dev and configure again, or take --backend fluid";
}

Timeline run(const Program&, const Cluster&, const RunOptions&) { throw BackendError("simgrid: " + why_not()); }

}  // namespace

extern const BackendDef simgrid;
const BackendDef simgrid{
    .name = "simgrid",
    .summary = "contention: SimGrid shares every link among the transfers that cross it (max-min)",
    .source = "Casanova et al., Versatile, scalable and accurate simulation of distributed applications, JPDC 2014",
    .clock = Clock::Simulated,
    .version = [] { return std::string(); },
    .why_not = why_not,
    .run = run,
};

}  // namespace stagecraft::backends
