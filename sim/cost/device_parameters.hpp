#pragma once

#include <vector>

#include "sim/cost/stage_shape.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// Parameters that one device of a stage keeps: dense ones, divided by tensor or whole, and parameters of experts.
/// Layers count that the stage owns, and one copy of all that it shares with a layer of another stage.
struct DeviceParameters {
  double dense = 0, experts = 0;
};

DeviceParameters device_parameters(const std::vector<LayerId>& layers, const Degrees&, const ModelGraph&);
/// Parameters of the layers of the stage and of its part of the vocabulary.
DeviceParameters device_parameters(const StageShape&, const ModelGraph&);

/// Parameters that each device of a stage with these layers keeps: all that the layers own, and one copy of all that
/// they share with a layer of another stage.
double parameters_of(const std::vector<LayerId>& layers, const ModelGraph&);

}  // namespace stagecraft
