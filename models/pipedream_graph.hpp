#pragma once

#include <string>
#include <string_view>

#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// A model from the text that PipeDream's profiler writes (graph.txt of msr-fiddle/pipedream): one line for each layer,
/// times in milliseconds and sizes in bytes of a mini-batch of `samples`, then one line for each edge.
///
/// PipeDream's optimizer ignores layers called Input... that read nothing (their time is the data loader's) and
/// `__getitem__` layers without a reader; so does this function.
ModelGraph read_pipedream_graph(std::string_view text, const std::string& file, int samples);

/// A model/1 file of the builder `timed`; reading it gives the same model.
std::string timed_model_yaml(const ModelGraph&, const std::string& title);

}  // namespace stagecraft
