#pragma once

#include <string>
#include <vector>

#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// A model/1 file of the builder `listed`, which reads back to the same: comments first, and a note behind each layer.
std::string listed_model_yaml(const ModelGraph&, const std::string& title, const std::vector<std::string>& comments,
                              const std::vector<std::string>& notes);

}  // namespace stagecraft
