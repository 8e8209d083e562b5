#pragma once

#include <string>

#include "backends/backend.hpp"
#include "sim/experiment/run.hpp"
#include "sim/output/validation.hpp"

namespace stagecraft {

/// The backend of this name, which has to be one that really computes, or one that simulates; else InputError.
const BackendDef& real_backend(const std::string& name);
const BackendDef& simulating_backend(const std::string& name);

/// Measures what the plan of a scenario runs: its layers with its micro-batch sizes, with as many devices busy at the
/// same time as it has, or as this machine has cores.
Profile take_profile(const CompiledExperiment&, const std::string& backend, double seconds);

/// Whether the load of the machine changed between two profiles of the same layers: empty unless their times differ by
/// more than 5 %, in the median over the layers.
std::string changed_load(const Profile& before, const Profile& after);

/// Empty if each device of a real run on this machine has a core.
std::string shared_cores_note(const CompiledExperiment&);

/// One scenario, simulated with a profile of this machine and then really run.
struct Validated {
  Profile profile;
  CompiledExperiment compiled;
  Outcome simulated, measured;
  Validation validation;
  int layers_measured = 0, layers = 0;  ///< Layers of the model that the profile knows, and all layers of the model.
};

/// Profiles (unless the experiment has a profile), simulates, runs, compares. No verdict is sure where the profile
/// lacks something that a group or divided states need.
Validated validate_experiment(const Experiment&, const std::string& backend, const std::string& simulator,
                              double seconds);

}  // namespace stagecraft
