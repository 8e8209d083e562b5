#include <optional>

#include <fmt/format.h>

#include "sim/experiment/scenario.hpp"
#include "sim/published/published.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/sweep/sweep.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/glossary.hpp"

namespace stagecraft::commands {
namespace {

int execute_explain(const Arguments& a) {
  if (a.flag("reference")) return print(config::reference(scenario_fields(), "Scenario")), 0;
  const std::string path = a.text("PATH");
  const bool sweep = path == "sweep" || path.starts_with("sweep.");
  const bool published = path == "published" || path.starts_with("published.");
  if (published) return print(config::explain(published_fields(), path.size() > 10 ? path.substr(10) : "") + "\n"), 0;
  if (sweep) return print(config::explain(sweep_fields(), path.size() > 6 ? path.substr(6) : "") + "\n"), 0;
  const std::optional<std::string> entry = glossary_text(path);
  try {
    print(config::explain(scenario_fields(), path) + "\n");
    if (entry) print("\n");
  } catch (const InputError& e) {
    if (entry) return print(*entry), 0;
    const std::string near = suggest(path, glossary_words());
    if (path.find('.') != std::string::npos || near.empty()) throw;
    throw InputError(e.problems().front().message, near);
  }
  if (entry) print(*entry);
  return 0;
}

}  // namespace

extern const Command explain{
    .name = "explain",
    .summary =
        "Explain a field by its path (of other files: sweep.axes, published.tables), a term such as bubble, an "
        "operation such as 0F3, or a name such as 1f1b",
    .group = "Inspect",
    .example = "stagecraft explain run.schedule",
    .arguments = {{"PATH", Argument::Kind::Text, "Dotted path, term or name; without one, the top of the file"},
                  {"--reference", Argument::Kind::Flag, "Print every field, as Markdown"}},
    .run = execute_explain,
};

}  // namespace stagecraft::commands
