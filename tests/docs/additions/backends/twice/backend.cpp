#include "backends/backend.hpp"

namespace stagecraft::backends {
extern const BackendDef ideal;

namespace {

Timeline run(const Program& program, const Cluster& cluster, const RunOptions& options) {
  Timeline timeline = ideal.run(program, cluster, options);
  for (auto* column : {&timeline.start, &timeline.end})
    for (double& time : *column) time *= 2;
  return timeline;
}

}  // namespace

extern const BackendDef twice;
const BackendDef twice{
    .name = "twice",
    .summary = "Everything takes twice as long",
    .source = "an example",
    .clock = Clock::Simulated,
    .version = [] { return std::string(); },
    .why_not = [] { return std::string(); },
    .run = run,
};

}  // namespace stagecraft::backends
