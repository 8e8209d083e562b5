#pragma once

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// What PipeEdge's three files say of --model becomes a folder --out: model.yaml, cluster.yaml and scenario.yaml for
/// the planner `edgepipe`, and schedule.yml, the best plan as PipeEdge's runtime reads it. Doubts about the files go to
/// stderr. Returns the exit code.
int import_pipeedge(const Arguments&);

}  // namespace stagecraft
