// `stagecraft explain`: prints explanation() of a word, which `serve` shares, or with --reference all fields of a
// scenario as Markdown.

#include "sim/experiment/scenario.hpp"
#include "sim/output/text_layout.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/explanation.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft::commands {
namespace {

int execute_explain(const Arguments& a) {
  print(a.flag("reference") ? config::reference(scenario_fields(), "Scenario")
                            : wrap_lines(explanation(a.text("PATH")), text_width()));
  return 0;
}

}  // namespace

extern const Command explain{
    .name = "explain",
    .summary =
        "Explain a field by its path (of other files: sweep.axes, published.tables), a term such as bubble, an "
        "operation such as 0F3, or a name such as 1f1b",
    .group = "Rest",
    .example = "stagecraft explain run.schedule",
    .arguments = {{"PATH", Argument::Kind::Text, "Dotted path, term or name; without one, the top of the file"},
                  {"--reference", Argument::Kind::Flag, "Print every field, as Markdown"}},
    .run = execute_explain,
};

}  // namespace stagecraft::commands
