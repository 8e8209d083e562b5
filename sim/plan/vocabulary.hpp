#pragma once

#include <vector>

#include "sim/model/model_graph.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The embedding, the scores of all words and their loss, as their operations show them. Empty unless the model has all
/// three, and one loss alone.
std::vector<LayerId> vocabulary_layers(const ModelGraph&);

/// Takes these layers out of the stages of a finished chain: each rank has a part of them.
void divide_vocabulary(Plan&, const ModelGraph&);

}  // namespace stagecraft
