// For `check --framework`: finds out whether the file is a scenario, which has to run too, or the framework's own
// configuration, and judges it by the framework's rules. Bridge's own rules are about overrides of a recipe, so a
// scenario is judged by the rules of Megatron-LM.

#include "tools/stagecraft/check_input.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/bridge.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "sim/interchange/rules/bridge.hpp"

namespace stagecraft {
namespace {

struct FrameworkFiles {
  const FrameworkRules& rules;
  FrameworkConfiguration (*write)(const PlannedExperiment&);
  /// What there is to say about a configuration that is accepted; InputError with what is wrong.
  std::vector<std::string> (*check)(const std::string& text, const std::string& file, const SetupOptions&);
};

/// The warnings of the framework among the notes of its reader.
template <TrainingSetup (*kRead)(const std::string&, const std::string&, const SetupOptions&)>
std::vector<std::string> check_by_reader(const std::string& text, const std::string& file,
                                         const SetupOptions& options) {
  const TrainingSetup setup = kRead(text, file, options);
  if (!setup.of_other_releases.empty()) throw InputError(setup.of_other_releases);
  std::vector<std::string> notes = setup.assumed;
  erase_if(notes, [](const std::string& note) { return note.find(" warns of this ") == std::string::npos; });
  return notes;
}

/// A recipe of Megatron-Bridge with its overrides, by its own rules, and by the rules of Megatron-LM where the recipe
/// is known.
std::vector<std::string> judge_overrides(const std::string& text, const std::string& file,
                                         const SetupOptions& options) {
  std::vector<std::string> notes;
  std::vector<Diagnostic> problems;
  for (const Diagnostic& broken : broken_bridge_rules(text)) {
    const FrameworkRule& rule = find_rule(bridge_rules(), broken.code);
    const std::string message = refused_by(bridge_rules(), rule) + broken.message;
    if (rule.only_warns())
      notes.push_back(message);
    else
      problems.push_back({{file, 0, 0}, "", message, broken.help, broken.code});
  }
  try {
    read_bridge(text, file, options);
  } catch (const InputError& error) {
    for (const Diagnostic& d : error.problems())
      if (d.code == kUnknownRecipe)
        notes.push_back(d.message + ", so only rules of Megatron-Bridge's own are checked; " + d.help);
      else
        problems.push_back(d);
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return notes;
}

FrameworkFiles files_of(const std::string& name) {
  if (name == "megatron") return {megatron_rules(), megatron_arguments, check_by_reader<read_megatron>};
  if (name == "torchtitan") return {torchtitan_rules(), torchtitan_config, check_by_reader<read_torchtitan>};
  if (name == "deepspeed") return {deepspeed_rules(), deepspeed_config, check_by_reader<read_deepspeed>};
  if (name == "bridge") return {bridge_rules(), megatron_arguments, judge_overrides};
  throw InputError(fmt::format("--framework: there are no rules of '{}'", name),
                   "megatron, torchtitan, deepspeed or bridge");
}

/// Whether a file is a configuration of a framework, and not a scenario.
bool is_configuration(const std::string& file) {
  constexpr std::string_view kEndings[] = {".sh", ".bash", ".slurm", ".txt", ".toml", ".json", ".py"};
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](std::string_view e) { return file.ends_with(e); });
}

/// The problems with the formula of the rule that each breaks.
std::vector<Diagnostic> with_formulas(const InputError& error, const FrameworkRules& rules) {
  std::vector<Diagnostic> problems = error.problems();
  for (Diagnostic& d : problems)
    for (const FrameworkRule& rule : rules.rules)
      if (rule.name == d.code) d.message += fmt::format(" [rule {}: {}]", rule.name, rule.formula);
  return problems;
}

}  // namespace

CheckedInput check_by_framework(const std::string& framework, const std::string& file,
                                const std::vector<std::string>& sets, const SetupOptions& options) {
  const FrameworkFiles files = files_of(framework);
  if (!options.config.empty() && !(framework == "torchtitan" && file.ends_with(".py")))
    throw InputError("--config is for a Python file of torchtitan", "leave it out");
  if (!options.release.empty() && !is_configuration(file))
    throw InputError("--release is for scripts of Megatron-LM; a scenario says software.release",
                     "--set software.release=" + options.release);
  CheckedInput checked;
  std::string release = options.release;
  try {
    if (is_configuration(file)) {
      checked.notes = files.check(read_file(file), file, options);
    } else {
      const Experiment experiment = load_experiment(file, sets);
      if (experiment.software().name == "megatron-core") release = experiment.software().release;
      checked.notes = files.write(compile(plan_experiment(experiment))).notes;
    }
  } catch (const InputError& error) {
    throw InputError(with_formulas(error, files.rules));
  }
  const bool is_megatron = &files.rules == &megatron_rules();
  checked.summary = fmt::format("{} accepts it", title_of(files.rules, is_megatron ? release : ""));
  return checked;
}

}  // namespace stagecraft
