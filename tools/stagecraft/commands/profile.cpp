// `stagecraft profile`: measures a scenario with take_profile(), which `validate` shares, and prints or writes the
// profile that scenarios can name.

#include <filesystem>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/experiment/profiling.hpp"
#include "sim/output/files.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

int execute_profile(const Arguments& a) {
  const std::string backend = a.text("backend");
  if (a.has("out")) {
    if (const auto folder = std::filesystem::path(a.text("out")).parent_path(); !folder.empty())
      make_folder(folder.string());
    check_output_of(a, "out");
  }
  const CompiledExperiment compiled = compile_or_advise(load_experiment(a.text("FILE"), a.list("set")));
  const Profile profile = take_profile(compiled, backend, a.number("seconds"));
  const std::string yaml = to_yaml(profile);
  if (!a.has("out")) {
    print(yaml);
    return 0;
  }
  const std::string file = a.text("out");
  write_output_of(a, "out", yaml, CommentStyle::Hash);
  print_error("wrote {}: {}, {} at once on {}\n", file, pluralize(std::ssize(profile.layers), "layer"), profile.threads,
              profile.machine);
  return 0;
}

}  // namespace

extern const Command profile{
    .name = "profile",
    .summary = "Measure the layers of a scenario's model, updates and messages on this machine",
    .group = "Measure",
    .example = "stagecraft profile scenarios/examples/cpu-transformer.yaml --out models/profiles/this-machine.yaml",
    .arguments = {{"FILE", Argument::Kind::Text, "Scenario", {}, true},
                  {"-b,--backend", Argument::Kind::Text, "Backend to measure", "cpu"},
                  {"-s,--set", Argument::Kind::List, "path=value, such as model.hidden=256; may be repeated"},
                  {"--seconds", Argument::Kind::Number, "Time to measure, for each micro-batch size", "1"},
                  {"-o,--out", Argument::Kind::Text, "File to write (default: print it)"},
                  force_argument(),
                  quiet_argument()},
    .run = execute_profile,
};

}  // namespace stagecraft::commands
