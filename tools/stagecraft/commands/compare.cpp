#include <fmt/format.h>

#include "tools/stagecraft/compare_runs.hpp"
#include "tools/stagecraft/compare_schedules.hpp"

namespace stagecraft::commands {
namespace {

std::vector<Argument> arguments() {
  std::vector<Argument> all{{"RUN",
                             Argument::Kind::List,
                             "Folders that run --out wrote, held against the first; with --schedules, a scenario",
                             {},
                             true}};
  for (Argument& a : compare_schedules_arguments()) all.push_back(std::move(a));
  all.push_back({"--format", Argument::Kind::Text, "text or csv; with --schedules also json", "text"});
  return all;
}

int execute(const Arguments& a) {
  if (a.has("schedules")) return compare_schedules(a);
  for (const char* name : {"set", "backend", "replay", "by", "gantt", "width", "svg"})
    if (a.has(name)) throw InputError(fmt::format("--{} needs --schedules", name), "add --schedules all");
  return compare_runs(a);
}

}  // namespace

extern const Command compare{
    .name = "compare",
    .summary = "Put runs, or schedules on one scenario, side by side",
    .group = "Run",
    .example =
        "stagecraft compare out/a out/b\n  stagecraft compare --schedules all scenarios/examples/quickstart.yaml",
    .arguments = arguments(),
    .run = execute,
};

}  // namespace stagecraft::commands
