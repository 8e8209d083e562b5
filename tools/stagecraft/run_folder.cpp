#include "tools/stagecraft/run_folder.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"

namespace stagecraft {
namespace {

/// What a run may write. results.json is the first to be removed and the last to be written: where it is, all of a run
/// is.
constexpr const char* kFiles[] = {"results.json", "scenario.yaml", "spans.csv",   "memory.csv",
                                  "trace.json",   "timeline.svg",  "report.html", "losses.csv"};

/// Lists the files that a run wrote there. It is written before those files, and stays when the run is interrupted.
constexpr const char* kList = ".stagecraft-run";
constexpr const char* kListIs = "# Files that stagecraft run --out wrote here; the next one replaces them.";

bool there(const std::string& file) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(file, error));
}

[[noreturn]] void refuse(const std::string& file) {
  throw InputError(fmt::format("--out: nothing says that a run wrote '{}', and one would replace it", file),
                   "name another folder, or move it");
}

/// Earlier versions wrote no list; their results.json says that the files are of a run.
std::vector<std::string> written_without_list(const std::string& results) {
  if (!there(results)) return {};
  const std::optional<Json> json = Json::parse(read_file(results));
  const Json* schema = json ? json->find("schema") : nullptr;
  if (!schema || *schema != "results/1") return {};
  std::vector<std::string> names(std::begin(kFiles), std::end(kFiles));
  if (!json->find("learnt")) std::erase(names, "losses.csv");
  return names;
}

/// What is there of a run before, in the order of kFiles.
std::vector<std::string> files_of_run(const std::string& folder) {
  const std::string list = folder + "/" + kList;
  const bool listed = there(list);
  const auto names = listed ? split(read_file(list), '\n') : written_without_list(folder + "/results.json");
  if (listed && names.front() != kListIs) refuse(list);
  std::vector<std::string> found;
  for (const std::string name : kFiles) {
    if (!there(folder + "/" + name)) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) refuse(folder + "/" + name);
    found.push_back(name);
  }
  return found;
}

void write_list(const std::string& folder, const std::vector<std::string>& names) {
  write_file(folder + "/" + kList, fmt::format("{}\n{}\n", kListIs, join(names, "\n")));
}

void remove_file(const std::string& file) {
  std::error_code error;
  std::filesystem::remove(file, error);
  if (error) throw BackendError(fmt::format("'{}' cannot be removed: {}", file, error.message()));
}

}  // namespace

void make_run_folder(const std::string& folder, const std::string& scenario_file) {
  const std::string scenario = folder + "/scenario.yaml";
  std::error_code error;
  if (std::filesystem::equivalent(scenario, scenario_file, error))
    throw InputError(fmt::format("--out: '{}' is what is run, and would be lost", scenario), "name another folder");
  files_of_run(folder);
  make_folder(folder);
}

void write_run(const std::string& folder, const std::vector<RunFile>& files) {
  const std::vector<std::string> before = files_of_run(folder);
  on_interrupt_say(fmt::format("{}'{}' has a whole run only if it has a results.json",
                               before.empty() ? "" : "the run before was being replaced: ", folder));
  write_list(folder, before);
  for (const std::string& name : before) remove_file(folder + "/" + name);
  std::vector<std::string> names;
  for (const RunFile& file : files) names.push_back(file.name);
  write_list(folder, names);
  for (const RunFile& file : files) write_file(folder + "/" + file.name, file.text());
  on_interrupt_say(fmt::format("the run in '{}' is whole", folder));
}

}  // namespace stagecraft
