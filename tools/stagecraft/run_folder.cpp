#include "tools/stagecraft/run_folder.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {
namespace {

/// What run --out writes. results.json is the last to be removed and to be written: where it is, all of it is one run.
constexpr const char* kFiles[] = {"scenario.yaml", "spans.csv",   "memory.csv", "trace.json",
                                  "timeline.svg",  "report.html", "losses.csv", "results.json"};

bool there(const std::string& file) {
  std::error_code error;
  return std::filesystem::exists(file, error);
}

bool has_results(const std::string& folder) {
  const auto results = nlohmann::json::parse(read_file(folder + "/results.json"), nullptr, false);
  return results.is_object() && results.value("schema", nlohmann::json()) == "results/1";
}

[[noreturn]] void refuse(const std::string& file) {
  throw InputError(fmt::format("--out: '{}' is no run's, and would be lost", file), "name another folder");
}

}  // namespace

void make_run_folder(const std::string& folder, const std::string& scenario_file) {
  const std::string scenario = folder + "/scenario.yaml", results = folder + "/results.json";
  std::error_code error;
  if (std::filesystem::equivalent(scenario, scenario_file, error))
    throw InputError(fmt::format("--out: '{}' is what is run, and would be lost", scenario), "name another folder");
  if (there(results) && !has_results(folder)) refuse(results);
  if (there(scenario) && !there(results)) refuse(scenario);
  make_folder(folder);
}

void clear_run_folder(const std::string& folder) {
  std::error_code none;
  if (!there(folder + "/results.json")) return;
  for (const char* file : kFiles) std::filesystem::remove(folder + "/" + file, none);
}

}  // namespace stagecraft
