#pragma once

#include <vector>

#include "sim/model/model_graph.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The embedding, the scores of all words and their loss, as their operations show them. Empty unless the model has all
/// three, and one loss alone.
std::vector<LayerId> vocabulary_layers(const ModelGraph&);

/// Takes these layers out of the stages of a finished chain: each rank has a part of them, with its first stage.
void divide_vocabulary(Plan&, const ModelGraph&);

/// The stages with a part of a vocabulary that all ranks divide, the first one of each rank: that of the rank of the
/// last stage, which has the input of the scores, and then the others from the last one on.
std::vector<StageId> vocabulary_stages(const Plan&);

}  // namespace stagecraft
