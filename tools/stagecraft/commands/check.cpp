// `stagecraft check`: collects the problems of all files, by check_input() or by the rules of a framework
// (check_framework.cpp), and prints them as text, JSON, GitHub annotations or SARIF (problem_formats.cpp).

#include <fmt/core.h>

#include "tools/stagecraft/check_input.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

/// Prints the problems in a format for other programs; false where the format is text.
bool print_for_programs(const std::string& format, const InputProblems& all_problems) {
  if (format == "json") print(diagnostics_json(all_problems.problems) + "\n");
  if (format == "github") print(github_annotations(all_problems.problems));
  if (format == "sarif") print(sarif(all_problems.problems) + "\n");
  return format != "text";
}

SetupOptions setup_options(const Arguments& a) {
  return {.cluster = a.text("cluster"),
          .devices = a.has("devices") ? a.count("devices", 1, 1 << 20) : 0,
          .config = a.text("config"),
          .release = a.text("release")};
}

int execute_check(const Arguments& a) {
  if (a.has("config") && !a.has("framework"))
    throw InputError("--config is for a Python file of torchtitan", "--framework torchtitan, or leave it out");
  if (a.has("release") && a.text("framework") != "megatron")
    throw InputError("--release is for scripts of Megatron-LM", "--framework megatron, or leave it out");
  check_format(a.text("format"), {"text", "json", "github", "sarif"});
  InputProblems all_problems;
  std::string good;
  for (const std::string& file : a.list("FILE")) {
    try {
      const CheckedInput checked = a.has("framework")
                                       ? check_by_framework(a.text("framework"), file, a.list("set"), setup_options(a))
                                       : check_input(file, a.list("set"));
      for (const std::string& note : checked.notes) print_error("note: {}\n", note);
      warn(checked.warnings);
      good += fmt::format("{}: ok, {}\n", file, checked.summary);
    } catch (const InputError& e) {
      all_problems.add(e);
    } catch (const Infeasible& e) {
      all_problems.add(e, file);
    }
  }
  if (print_for_programs(a.text("format"), all_problems)) return all_problems.exit_code;
  print(good);
  if (!all_problems.problems.empty()) print_error("{}\n", render(all_problems.problems));
  return all_problems.exit_code;
}

}  // namespace

extern const Command check{
    .name = "check",
    .summary = "Report everything that is wrong with scenarios, models and clusters",
    .group = "Files",
    .example = "stagecraft check scenarios/examples/*.yaml",
    .arguments = {{"FILE", Argument::Kind::List, "Files", {}, true},
                  {"-s,--set", Argument::Kind::List, "path=value, applied to each scenario"},
                  {"--framework", Argument::Kind::Text,
                   "Judge scenarios, or a script, TOML or JSON of it, by the rules of megatron, torchtitan, deepspeed "
                   "or bridge"},
                  {"--devices", Argument::Kind::Count, "GPUs of a script, TOML or JSON"},
                  {"--cluster", Argument::Kind::Text, "Cluster of a script, TOML or JSON"},
                  {"--config", Argument::Kind::Text,
                   "Function of a Python file of torchtitan that makes the configuration (default: its only one)"},
                  {"--release", Argument::Kind::Text,
                   "Release of Megatron-LM that runs a script, 0.11 to 0.20 (default: 0.20)"},
                  {"--format", Argument::Kind::Text, "text, json, github (annotations of a GitHub action) or sarif",
                   "text"}},
    .run = execute_check,
};

}  // namespace stagecraft::commands
