#pragma once

#include <string>

namespace stagecraft {

/// Before anything runs: makes the folder of `run --out`. InputError where a file of somebody's own would be lost: the
/// scenario that is run, or a scenario.yaml or results.json that no run has written.
void make_run_folder(const std::string& folder, const std::string& scenario_file);

/// Removes what another run has left there, and nothing else, so that all that is there is of one run.
void clear_run_folder(const std::string& folder);

}  // namespace stagecraft
