#include <fmt/format.h>

#include "sim/experiment/scenario.hpp"
#include "sim/published/published.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/sweep/sweep.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

int execute(const Arguments& a) {
  if (a.flag("reference")) return print(config::reference(scenario_fields(), "Scenario")), 0;
  const std::string path = a.text("PATH");
  const bool sweep = path == "sweep" || path.starts_with("sweep.");
  const bool published = path == "published" || path.starts_with("published.");
  if (published) return print(config::explain(published_fields(), path.size() > 10 ? path.substr(10) : "") + "\n"), 0;
  print((sweep ? config::explain(sweep_fields(), path.size() > 6 ? path.substr(6) : "")
               : config::explain(scenario_fields(), path)) +
        "\n");
  return 0;
}

}  // namespace

extern const Command explain{
    .name = "explain",
    .summary = "Describe a field of a scenario by its path; of other files: sweep.axes, published.tables",
    .group = "Look before you run",
    .example = "stagecraft explain run.schedule",
    .arguments = {{"PATH", Argument::Kind::Text, "Dotted path; without one, the top of the file"},
                  {"--reference", Argument::Kind::Flag, "Every field, as Markdown"}},
    .run = execute,
};

}  // namespace stagecraft::commands
