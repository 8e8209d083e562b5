#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/profiling.hpp"
#include "sim/output/json_files.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"

namespace stagecraft::commands {
namespace {

constexpr double kTolerance = 0.05;
constexpr int kFewest = 21;  // The first warms up; twenty count.

/// A copy of an experiment with its model in one stage on one device.
Experiment undivided(const Experiment& experiment) {
  const PlannerDef& planner = get_from(planners::catalog(), "planner", "balanced");
  Experiment e =
      with_order(experiment, schedule_spec(get_from(schedules::catalog(), "schedule", "gpipe")), weights_spec("flush"));
  e.plan = plan_spec_for(planner, e.plan, 1, *e.cluster);
  e.plan.stages = 1;
  e.plan.group = {};
  e.plan.order = {};
  e.plan.sharding = StateSharding::None;
  return e;
}

int execute_validate(const Arguments& a) {
  if (a.has("out")) make_folder(a, {"profile.yaml", "validation.json"});
  std::vector<std::string> sets = a.list("set");
  sets.push_back(fmt::format("run.iterations={}", a.count("iterations", kFewest, 10000)));
  const Experiment experiment = load_experiment(a.text("FILE"), sets);
  const Validated v = validate_experiment(experiment, a.text("backend"), a.text("simulator"), a.number("seconds"));
  print(fmt::format("{}\n{} on {}; profile of {}, {} at once\n",
                    experiment.title.empty() ? "(untitled)" : experiment.title,
                    pluralize(v.compiled.plan.stage_count(), "stage"),
                    pluralize(v.compiled.plan.device_count(), "device"), v.profile.machine, v.profile.threads));
  print(to_text(v.validation, kTolerance));
  if (!a.flag("no-control")) {
    flush();
    on_interrupt_say("what is printed above is done");
    const Validated control =
        validate_experiment(undivided(experiment), a.text("backend"), a.text("simulator"), a.number("seconds"));
    print("\nControl: the same in one stage on one device\n" + to_text(control.validation, kTolerance));
  }
  if (a.has("out")) {
    const std::string folder = a.text("out");
    FolderUpdate update(folder, overwrite_of(a));
    update.add("profile.yaml", to_yaml(v.profile));
    update.add(
        "validation.json",
        validation_json(experiment.title, v.validation, v.simulated.timeline, v.measured.timeline, kTolerance) + "\n");
    update.commit();
    print_error("wrote {}/profile.yaml, validation.json\n", folder);
  }
  return 0;
}

}  // namespace

extern const Command validate{
    .name = "validate",
    .summary = "Profile this machine, simulate, run for real, and compare the two",
    .group = "Run",
    .example = "stagecraft validate scenarios/examples/cpu-transformer.yaml",
    .arguments = {{"FILE", Argument::Kind::Text, "Scenario", {}, true},
                  {"-b,--backend", Argument::Kind::Text, "Backend of the real run", "cpu"},
                  {"--simulator", Argument::Kind::Text, "Backend that simulates it", "simgrid"},
                  {"-s,--set", Argument::Kind::List, "path=value, such as run.micro_batches=16; may be repeated"},
                  {"--iterations", Argument::Kind::Count, "Iterations to run; the first is not counted", "25"},
                  {"--seconds", Argument::Kind::Number, "Time to profile, for each micro-batch size", "2"},
                  {"--no-control", Argument::Kind::Flag,
                   "Do not run the control: the same model in one stage on one device"},
                  {"-o,--out", Argument::Kind::Text, "Folder for profile.yaml and validation.json"},
                  force_argument(),
                  quiet_argument()},
    .run = execute_validate,
};

}  // namespace stagecraft::commands
