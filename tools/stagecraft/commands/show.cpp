// `stagecraft show`: prints what a scenario becomes before it runs: layers, plan, loads of micro-batches, costs of
// stages by class of time, schedule, or program.

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/run.hpp"
#include "sim/schedule/layout.hpp"
#include "sim/schedule_file/csv.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

std::string model_text(const ModelGraph& model) {
  std::string text = fmt::format("{:<20} {:<18} {:>12} {:>14} {:>12} {:>12}  {}\n", "layer", "type", "parameters",
                                 "forward", "output", "stash", "inputs");
  for (const Layer& l : model.layers) {
    std::string inputs;
    for (const LayerId i : l.inputs) inputs += (inputs.empty() ? "  " : " ") + model.layers[i].name;
    text += fmt::format("{:<20} {:<18} {:>12.0f} {:>14} {:>12} {:>12}{}\n", l.name, l.type, l.parameters,
                        l.times ? to_text(l.times->forward) : to_text(l.forward), to_text(l.output), to_text(l.stash),
                        inputs);
  }
  return text;
}

std::string costs_text(const CompiledExperiment& p) {
  std::size_t width = 10;
  for (const Stage& stage : p.plan.stages)
    for (const DeviceId d : stage.leaders) width = std::max(width, p.cluster().devices[d].name.size());
  constexpr const char* kRow = "{:<6} {:<{}} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n";
  std::string text = fmt::format(kRow, "stage", "device", width, "forward", "backward", "update", "weights",
                                 "gradients", "optimizer", "stash");
  for (int s = 0; s < p.plan.stage_count(); ++s)
    for (std::size_t r = 0; r < p.plan.stage(StageId{s}).leaders.size(); ++r) {
      const StageCost& c = p.costs.at(StageId{s}, static_cast<int>(r));
      const std::string& device = p.cluster().devices[p.plan.stage(StageId{s}).leaders[r]].name;
      text += fmt::format(kRow, s, device, width, to_text(c.forward), to_text(c.backward), to_text(c.update),
                          to_text(c.memory.weights), to_text(c.memory.gradients), to_text(c.memory.optimizer),
                          to_text(c.memory.whole_stash()));
    }
  return text;
}

/// Where the planned time of each pass goes: classes that take time in any of them, as shares.
std::string passes_text(const Program& program) {
  constexpr std::pair<InstructionKind, const char*> kinds[] = {{InstructionKind::Forward, "forward"},
                                                               {InstructionKind::Backward, "backward"},
                                                               {InstructionKind::Update, "update"}};
  std::vector<TimeClass> classes;
  for (const TimeClass& c : time_class_list())
    if (std::any_of(program.parts.begin(), program.parts.end(), [&](const StageParts& stage) {
          return std::any_of(std::begin(kinds), std::end(kinds),
                             [&](const auto& kind) { return (stage.parts(kind.first).*c.part).value > 0; });
        }))
      classes.push_back(c);
  std::string text = fmt::format("\n{:<6} {:<10} {:>12}", "stage", "pass", "time");
  const auto width = [](const TimeClass& c) { return std::max<std::size_t>(8, c.name.size()); };
  for (const TimeClass& c : classes) text += fmt::format("  {:>{}}", c.name, width(c));
  text += "\n";
  for (const StageId stage : program.parts.ids())
    for (const auto& [kind, name] : kinds) {
      const TimeByClass& parts = program.parts[stage].parts(kind);
      text += fmt::format("{:<6} {:<10} {:>12}", stage.value, name, to_text(parts.total()));
      for (const TimeClass& c : classes)
        text += fmt::format("  {:>{}}", fmt::format("{:.1f} %", 100 * (parts.*c.part / parts.total())), width(c));
      text += "\n";
    }
  return text;
}

/// Seconds of the ops of all stages for a class of loads.
Seconds time_of_load(const CompiledExperiment& p, int replica, int load) {
  Seconds sum;
  for (const StageId s : p.plan.stages.ids()) {
    const StageCost& c = p.costs.at(s, replica, load);
    sum += c.forward + c.backward;
  }
  return sum;
}

std::string loads_text(const CompiledExperiment& p) {
  const PackedBatches* packs = p.experiment.run.packs.get();
  if (!packs) return "all micro-batches are alike\n";
  const int tokens = tokens_of_sample(p.model());
  const auto ranks = [&](std::size_t pack) {
    std::string counts;
    for (const RankRange& range : packs->ranks[pack]) counts += fmt::format(" {}", range.count);
    return counts;
  };
  constexpr const char* kRow = "{:<9} {:<11} {:<7} {:>9} {:>8} {:>14} {:>12} {:>9}{}\n";
  std::string text = fmt::format(kRow, "iteration", "micro-batch", "replica", "sequences", "tokens", "pairs", "time",
                                 "of mean", packs->ranks.empty() ? "" : " ranks of each sequence");
  for (std::size_t i = 0; i < packs->packs.size(); ++i) {
    const auto replica = static_cast<int>(i % packs->replicas);
    const auto micro = static_cast<int>(i / packs->replicas);
    if (packs->packs[i].empty()) continue;
    const Load load = p.plan.loads.classes[p.plan.loads.class_of[i]];
    const Seconds time = time_of_load(p, replica, p.plan.loads.class_of[i]);
    text += fmt::format(kRow, micro / packs->micro_batches, micro % packs->micro_batches, replica, load.samples,
                        fmt::format("{:.0f}", load.samples * load.rows * tokens),
                        fmt::format("{:.0f}", load.samples * load.pairs * tokens * tokens), to_text(time),
                        fmt::format("{:.3f}", time / time_of_load(p, replica, LoadTable::kMean) *
                                                  p.plan.loads.share_with_packs(replica)),
                        packs->ranks.empty() ? "" : ranks(i));
  }
  return text;
}

int execute_show(const Arguments& a) {
  const std::string what = a.text("what");
  const Scenario scenario = load_scenario(a.text("FILE"), a.list("set"));
  const std::vector<std::string> words = {"model", "plan", "loads", "costs", "schedule", "csv", "program"};
  if (std::find(words.begin(), words.end(), what) == words.end())
    throw InputError("--what: '" + what + "' is not known here", suggest(what, words));
  const Experiment experiment = read_experiment(scenario);
  if (what == "model") return print(model_text(*experiment.model)), 0;
  const CompiledExperiment p = compile_or_advise(experiment);
  if (what == "plan") print(to_text(p.plan));
  if (what == "loads") print(loads_text(p));
  if (what == "costs") print(costs_text(p) + (p.program.parts.empty() ? "" : passes_text(p.program)));
  if (what == "schedule") print(to_grid(p.schedule));
  if (what == "csv") print(to_csv(first_iteration(p.schedule, on_ranks(p.plan))));
  if (what == "program") print(to_text(p.program));
  return 0;
}

}  // namespace

extern const Command show{
    .name = "show",
    .summary = "Print the model, plan, loads, costs, schedule or program of a scenario as text",
    .group = "Files",
    .example = "stagecraft show scenarios/examples/quickstart.yaml --what program",
    .arguments = {{"FILE", Argument::Kind::Text, "Scenario", {}, true},
                  {"-w,--what", Argument::Kind::Text, "model, plan, loads, costs, schedule, csv or program", "plan"},
                  {"-s,--set", Argument::Kind::List, "path=value; may be repeated"}},
    .run = execute_show,
};

}  // namespace stagecraft::commands
