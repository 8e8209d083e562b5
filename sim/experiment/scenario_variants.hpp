#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/experiment/experiment.hpp"

namespace stagecraft {

/// Reads the scenario with more "path=value" after the options of the command line.
using ScenarioReader = std::function<Experiment(const std::vector<std::string>& sets)>;

/// The reader of the scenario `file` with `sets`. It parses the file once. What a variant describes like `base`, it
/// shares with it: the model, the cluster and the costs.
ScenarioReader scenario_reader(const std::string& file, const std::vector<std::string>& sets, const Experiment& base);

}  // namespace stagecraft
