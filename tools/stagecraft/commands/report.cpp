#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/backend.hpp"
#include "sim/core/text.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/kept_run.hpp"

namespace stagecraft::commands {
namespace {

bool is_folder(const std::string& given) {
  std::error_code error;
  return std::filesystem::is_directory(given, error);
}

std::string title_of(const Arguments& a, const KeptRun& first) {
  if (a.has("title")) return a.text("title");
  const auto results = nlohmann::json::parse(first.results, nullptr, false);
  const std::string title = results.is_object() ? results.value("title", "") : "";
  return title.empty() ? first.name : title;
}

void add_scenario(const std::string& given, const Arguments& a, std::vector<KeptRun>& runs) {
  const std::vector<std::string> backends = a.has("backend") ? a.list("backend") : std::vector<std::string>{"simgrid"};
  for (const std::string& backend : backends) get_from(backends::all(), "backend", backend);
  const Scenario scenario = load_scenario(given, a.list("set"));
  const Prepared prepared = prepare(scenario);
  for (const std::string& backend : backends)
    runs.push_back(kept_run(backends.size() > 1 ? given + " on " + backend : given, scenario, prepared,
                            run(scenario, prepared, backend)));
}

int execute(const Arguments& a) {
  std::vector<KeptRun> runs;
  bool ran = false;
  for (std::string given : a.list("RUN")) {
    while (given.size() > 1 && given.ends_with('/')) given.pop_back();
    if (is_folder(given)) {
      runs.push_back(read_kept_run(given));
    } else {
      add_scenario(given, a, runs);
      ran = true;
    }
  }
  for (const char* name : {"set", "backend"})
    if (a.has(name) && !ran)
      throw InputError(fmt::format("--{} is for scenarios, and these have run already", name), "give a scenario file");
  write_file(a.text("out"), html_page(runs, title_of(a, runs.front())));
  fmt::print(stderr, "wrote {}\n", a.text("out"));
  return 0;
}

}  // namespace

extern const Command report{
    .name = "report",
    .summary = "Write runs as one page to look at, above each other on one time axis",
    .group = "Run",
    .example =
        "stagecraft report out/a out/b --out page.html\n"
        "  stagecraft report scenarios/examples/teacher.yaml -b simgrid -b cpu",
    .arguments = {{"RUN",
                   Argument::Kind::List,
                   "Folders that run --out wrote, or scenarios, which are run; held against the first",
                   {},
                   true},
                  {"-b,--backend", Argument::Kind::List,
                   "Where scenarios run, each on all that are named (default: simgrid)"},
                  {"-s,--set", Argument::Kind::List, "path=value, applied to each scenario; may be repeated"},
                  {"-o,--out", Argument::Kind::Text, "File to write", "report.html"},
                  {"--title", Argument::Kind::Text, "Title of the page (default: that of the first run)"}},
    .run = execute,
};

}  // namespace stagecraft::commands
