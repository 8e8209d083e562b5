#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stagecraft {

/// A file of a run, which is made when it is written.
struct RunFile {
  std::string name;
  std::function<std::string()> text;
};

/// Before anything runs: makes the folder of `run --out`. InputError where a file of somebody's own would be lost: the
/// scenario that is run, or a file with a name of ours that nothing says a run has written.
void make_run_folder(const std::string& folder, const std::string& scenario_file);

/// Removes what a run before has written there, and nothing else, then writes `files`; the last is results.json.
void write_run(const std::string& folder, const std::vector<RunFile>& files);

}  // namespace stagecraft
