#include "sim/experiment/real_runs.hpp"

#include <fmt/format.h>

#include "sim/experiment/version.hpp"

namespace stagecraft {
namespace {

using config::Value;

/// Real backends cannot apply cluster changes or jitter, so they are refused instead of ignored.
void require_as_rated(const Value& cluster, const std::string& backend) {
  for (const char* key : {"changes", "jitter"})
    if (const Value* part = cluster.find(key);
        part && (part->is_map() ? config::as_share(part->at("most")) > 0 : !part->items.empty()))
      throw InputError({{part->where, fmt::format("cluster.{}", key),
                         fmt::format("the backend '{}' really runs on this machine, which does not change so", backend),
                         "--backend ideal, fluid or simgrid, or leave it out", "changes"}});
}

/// Plans of single tasks, as LayerPipe makes them, do not say where weights go.
void require_whole_stages(const Plan& plan, const std::string& backend) {
  for (const Stage& stage : plan.stages)
    if (stage.task != StageTask::Whole)
      throw InputError(fmt::format("the backend '{}' really trains, which plans of single tasks, as of stage '{}', "
                                   "are too coarse for: they do not say where weights go",
                                   backend, stage.name),
                       "--backend ideal or simgrid, or another planner");
}

}  // namespace

void check_real_run(const CompiledExperiment& c, const std::string& backend) {
  require_whole_stages(c.plan, backend);
  require_as_rated(c.experiment.source->at("cluster"), backend);
}

std::string machine_text(const Timeline& timeline) {
  const std::string& devices = timeline.provenance.machine;
  return devices.empty() ? machine() : machine() + ", " + devices;
}

}  // namespace stagecraft
