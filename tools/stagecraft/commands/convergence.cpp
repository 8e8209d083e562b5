// `stagecraft convergence`: trains with several weights policies (converge() in sim/experiment), prints which pays for
// each target loss, and writes convergence.csv, tta.csv and pictures; after Ctrl-C of the runs that were complete.

#include <cstdlib>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/convergence.hpp"
#include "sim/output/files.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/picture_options.hpp"

namespace stagecraft::commands {
namespace {

const std::vector<std::string> kConvergencePictures{"updates", "simulated", "measured"};

LossOver drawn_over(const Arguments& a) {
  const std::string name = picture_name(a, kConvergencePictures);
  return name == "updates" ? LossOver::Updates : name == "simulated" ? LossOver::Simulated : LossOver::Measured;
}

std::vector<double> targets_of(const Arguments& a) {
  std::vector<double> targets;
  for (const std::string& word : a.list("target")) {
    char* end = nullptr;
    targets.push_back(std::strtod(word.c_str(), &end));
    if (*end != '\0' || word.empty() || !(targets.back() > 0))
      throw InputError(fmt::format("--target: '{}' is not a loss", word), "a number above 0, such as 0.4");
  }
  return targets;
}

Convergence converge_until_interrupt(const Experiment& experiment, const ConvergenceOptions& o) {
  const NotedInterrupt noted;
  const StopScope scope(NotedInterrupt::came);
  return converge(experiment, o);
}

/// "5 seeds", or what an interrupt left: "7 of 35 runs".
std::string runs_text(const Convergence& c, int seeds) {
  if (runs_of(c) == c.runs_asked) return pluralize(seeds, "seed");
  return fmt::format("{} of {}", runs_of(c), pluralize(c.runs_asked, "run"));
}

/// "; without pipeoptim": the methods of which no run was complete.
std::string missing_methods(const Convergence& c, const std::vector<std::string>& asked) {
  const auto first = asked.begin() + std::ssize(c.methods);
  return first == asked.end() ? "" : "; without " + join(std::vector<std::string>(first, asked.end()));
}

int execute_convergence(const Arguments& a) try {
  ConvergenceOptions o;
  o.methods = split(a.text("methods"), ',');
  o.backend = a.text("backend");
  o.simulator = a.text("simulator");
  o.updates = a.count("updates", 1, 1000000);
  o.evaluate_every = a.count("evaluate-every", 1, 1000000);
  o.seeds = a.count("seeds", 1, 1000);
  o.measure = !a.flag("no-measure");
  const std::vector<double> targets = targets_of(a);
  check_picture_options(a, kConvergencePictures);
  if (asks_for_picture(a) && drawn_over(a) == LossOver::Measured && a.flag("no-measure"))
    throw InputError("--draw measured needs measured times", "leave out --no-measure");
  if (a.has("out")) make_folder(a, {"convergence.csv", "tta.csv", "convergence.svg"});
  const Experiment experiment = load_experiment(a.text("FILE"), a.list("set"));
  const Convergence c = converge_until_interrupt(experiment, o);
  print(fmt::format("{} of {}, {}; loss of the weights themselves\n\n", pluralize(o.updates, "update"),
                    pluralize(c.samples_per_update, "sample"), runs_text(c, o.seeds)) +
        to_text(c, targets));
  if (a.has("out")) {
    const std::string folder = a.text("out");
    FolderUpdate update(folder, overwrite_of(a));
    update.add("convergence.csv", convergence_csv(c));
    update.add("tta.csv", tta_csv(c, targets));
    update.add("convergence.svg", to_svg(convergence_pictures(c, experiment.title, kScreenPicture)));
    update.commit();
    print_error("wrote {}/convergence.csv, tta.csv, convergence.svg\n", folder);
  }
  write_pictures(
      a, [&](const PictureSize& size) { return convergence_picture(c, experiment.title, drawn_over(a), size); });
  if (!NotedInterrupt::came()) return 0;
  flush();
  print_error("{}; the tables have {} of {}, each of {}{}\n", NotedInterrupt::word(), runs_of(c),
              pluralize(c.runs_asked, "run"), pluralize(o.updates, "update"), missing_methods(c, o.methods));
  return NotedInterrupt::exit_code();
} catch (const Stopped&) {
  print_error("{} before the first run was complete; nothing was kept\n", NotedInterrupt::word());
  return NotedInterrupt::exit_code();
}

std::vector<Argument> convergence_arguments() {
  std::vector<Argument> arguments{
      {"FILE", Argument::Kind::Text, "Scenario", {}, true},
      {"-m,--methods", Argument::Kind::Text,
       "Commas between sync, weights policies, pipeoptim:as_released, stash@4; the first is the measure",
       "sync,naive,stash,2bw,spectrain,pipeoptim,pipeoptim:as_released"},
      {"-t,--target", Argument::Kind::List, "Loss to be reached; may be repeated"},
      {"--updates", Argument::Kind::Count, "Updates of each run", "600"},
      {"--evaluate-every", Argument::Kind::Count, "Updates between two evaluations", "20"},
      {"--seeds", Argument::Kind::Count, "Runs of each method, seeds 1, 2, ...", "5"},
      {"-s,--set", Argument::Kind::List, "path=value, such as training.learning_rate=0.005"},
      {"-b,--backend", Argument::Kind::Text, "Where it really trains", "cpu"},
      {"--simulator", Argument::Kind::Text, "Where the time of an update is simulated", "ideal"},
      {"--no-measure", Argument::Kind::Flag, "Leave out the time of an update on threads"},
      {"-o,--out", Argument::Kind::Text, "Folder for convergence.csv, tta.csv and convergence.svg"},
      force_argument(),
      quiet_argument()};
  for (Argument& a : picture_arguments("the losses")) arguments.push_back(std::move(a));
  arguments.push_back(draw_argument(kConvergencePictures));
  return arguments;
}

}  // namespace

extern const Command convergence{
    .name = "convergence",
    .summary = "Train with several weights policies: loss against updates and time, and which of them pays",
    .group = "Schedules",
    .example = "stagecraft convergence scenarios/examples/teacher.yaml --methods sync,naive,2bw,pipeoptim --target 0.5",
    .arguments = convergence_arguments(),
    .run = execute_convergence,
};

}  // namespace stagecraft::commands
