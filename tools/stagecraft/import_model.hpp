#pragma once

#include <string>

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// A model file from what other planners read: KIND pipedream-graph (graph.txt of PipeDream's profiler, a mini-batch of
/// --samples) or piper (JSON of Piper, what it calls a sample). Doubts about the figures go to stderr.
std::string import_model(const Arguments&);

}  // namespace stagecraft
