// `stagecraft resolve`: prints the tree that load_scenario() makes, as YAML or JSON, which every command that takes a
// scenario works on.

#include "sim/experiment/scenario.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

int execute_resolve(const Arguments& a) {
  check_format(a.text("format"), {"yaml", "json"});
  const config::Value tree = load_scenario(a.text("FILE"), a.list("set")).tree;
  print(a.text("format") == "json" ? config::to_json(tree) + "\n" : config::to_yaml(tree, true));
  return 0;
}

}  // namespace

extern const Command resolve{
    .name = "resolve",
    .summary = "Print a scenario with every default and reference filled in, as scenario/2",
    .group = "Files",
    .example = "stagecraft resolve scenarios/examples/quickstart.yaml",
    .arguments = {{"FILE", Argument::Kind::Text, "Scenario", {}, true},
                  {"-s,--set", Argument::Kind::List, "path=value; may be repeated"},
                  {"--format", Argument::Kind::Text, "yaml or json", "yaml"}},
    .run = execute_resolve,
};

}  // namespace stagecraft::commands
