// `stagecraft validate`: profiles, simulates and really runs a scenario, with a control in one stage; or with --network
// runs it over a network of namespaces. Both write validation.json.

#include <sys/utsname.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/experiment/profiling.hpp"
#include "sim/output/json_files.hpp"
#include "sim/output/network_validation.hpp"
#include "sim/program/unfold.hpp"
#include "tools/stagecraft/box_options.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/network_run.hpp"

namespace stagecraft::commands {
namespace {

constexpr double kTolerance = 0.05;
constexpr int kFewest = 21;  // The first warms up; twenty count.

std::string simulator_of(const Arguments& a, bool has_one_queue) {
  return a.has("simulator") ? a.text("simulator") : has_one_queue ? "fluid" : "simgrid";
}

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

constexpr double kProfileSeconds = 2, kNetworkSeconds = 15;
constexpr int kIterations = 25;
constexpr int kMostIterations = 10000;

/// The number with which the run takes this long, three at least: the first fills the pipeline and opens connections.
int iterations_within(const CompiledExperiment& compiled, const std::string& simulator, double scale, double seconds) {
  const Report report = run(compiled, simulator).report;
  return std::clamp(static_cast<int>(seconds / (report.period.value * scale)), 3, kMostIterations);
}

/// The network and what it showed, for whoever reads the result later.
Json network_result(const Arguments& a, box::Queue queue, const NetworkValidation& v, const box::BuiltNetwork& built) {
  utsname system{};
  uname(&system);
  Json rates = JsonArray();
  for (const box::RateReading& r : built.readings)
    rates.push_back(
        JsonObject{{"what", r.what}, {"nominal_bytes_per_s", r.nominal}, {"measured_bytes_per_s", r.measured}});
  Json json = JsonObject{{"kind", a.text("network")},
                         {"kernel", system.release},
                         {"queues", queue == box::Queue::Fair ? "htb, a class for each pair of devices" : "tbf"},
                         {"congestion_control", built.congestion_control},
                         {"scale", a.number("scale")},
                         {"rates", rates}};
  for (JsonMember& member : network_json(v)) json[member.key] = std::move(member.value);
  return json;
}

/// A scenario in which what devices of a group exchange inside of ops is on the network, each collective by itself,
/// unless it says otherwise. Adds the `sets` for that.
CompiledExperiment with_exchanges(const std::string& file, std::vector<std::string>& sets) {
  CompiledExperiment compiled = compile(load_experiment(file, sets));
  if (!has_groups(compiled.plan)) return compiled;
  constexpr std::pair<const char*, const char*> kValues[] = {{"collectives", "flows"}, {"detail", "layers"}};
  const std::size_t before = sets.size();
  for (const auto& [field, value] : kValues)
    if (!compiled.experiment.source->at("run").find(field)) sets.push_back(fmt::format("run.{}={}", field, value));
  return sets.size() == before ? std::move(compiled) : compile(load_experiment(file, sets));
}

/// An experiment whose links have one queue each, in which data and the words of each rendezvous wait. Only the backend
/// fluid simulates that.
CompiledExperiment with_one_queue(CompiledExperiment c) {
  Cluster cluster = c.cluster();
  for (Link& link : cluster.links) link.one_queue = true;
  c.experiment.cluster = std::make_shared<const Cluster>(std::move(cluster));
  c.program.handshakes = c.program.rendezvous;
  return c;
}

/// Whether exchanges inside of groups were on the network.
void note_exchanges(const CompiledExperiment& c, Validation& v) {
  if (!has_groups(c.plan)) return;
  v.notes.push_back(
      c.experiment.run.collectives_flow
          ? "what devices of a group exchange inside of ops are messages over the network"
          : "devices sleep for what their group exchanges inside of ops; run.collectives: flows sends it");
}

/// Simulates a scenario, runs it over a network that is built for it, and compares the two.
int validate_network(const Arguments& a) {
  if (a.text("network") != "namespaces")
    throw InputError(fmt::format("--network: '{}' is not known", a.text("network")), "namespaces");
  std::vector<std::string> sets = a.list("set");
  sets.push_back("run.compute=emulated");
  const CompiledExperiment shorter = with_exchanges(a.text("FILE"), sets);
  const box::NetworkOptions options = box_options(a, shorter.cluster());
  const bool is_fifo = options.queue == box::Queue::Fifo;
  const std::string simulator = simulator_of(a, is_fifo);
  const bool one_queue = is_fifo && simulator == "fluid";
  simulating_backend(simulator);
  require_namespaces();
  if (a.has("out")) make_folder(a, {"validation.json"});
  const double seconds = a.has("seconds") ? a.number("seconds") : kNetworkSeconds;
  const int iterations = a.has("iterations") ? a.count("iterations", 2, kMostIterations)
                                             : iterations_within(shorter, simulator, options.scale, seconds);
  sets.push_back(fmt::format("run.iterations={}", iterations));
  const CompiledExperiment compiled = compile(load_experiment(a.text("FILE"), sets));
  check_real_run(compiled, "cpu", true);
  const Outcome simulated = run(one_queue ? with_one_queue(compiled) : compiled, simulator);
  const box::Network network = box::network_of(compiled.cluster(), talking_devices(compiled), options);
  const box::RunningNetwork running(network, true);
  print(fmt::format("{}\n{} over {} of namespaces\n",
                    compiled.experiment.title.empty() ? "(untitled)" : compiled.experiment.title,
                    pluralize(compiled.plan.device_count(), "device"), pluralize(std::ssize(network.cables), "link")));
  print(readings_text(running.opened().readings));
  flush();
  const Timeline measured = run_in_network(compiled, running, a.text("FILE"), sets, options.scale);
  NetworkValidation v =
      compare_networks(compiled.program, simulated.timeline, simulated.report, measured, compiled.cluster());
  note_exchanges(compiled, v.validation);
  if (one_queue)
    v.validation.notes.push_back(
        fmt::format("simulated by fluid with one queue in each port{}",
                    compiled.program.rendezvous ? ", in which the words of a rendezvous wait, too" : ""));
  if (!are_nominal(running.opened().readings))
    v.validation.doubts.push_back("some links do not have their nominal rates: see above");
  print(to_text(v, kTolerance));
  if (a.has("out")) {
    FolderUpdate update(a.text("out"), overwrite_of(a));
    update.add("validation.json", validation_json(compiled.experiment.title, v.validation, simulated.timeline, measured,
                                                  kTolerance, network_result(a, options.queue, v, running.opened())) +
                                      "\n");
    update.commit();
    print_error("wrote {}/validation.json\n", a.text("out"));
  }
  return 0;
}

int execute_validate(const Arguments& a) {
  if (a.has("network")) return validate_network(a);
  if (a.has("out")) make_folder(a, {"profile.yaml", "validation.json"});
  std::vector<std::string> sets = a.list("set");
  const int iterations = a.has("iterations") ? a.count("iterations", kFewest, kMostIterations) : kIterations;
  const double seconds = a.has("seconds") ? a.number("seconds") : kProfileSeconds;
  sets.push_back(fmt::format("run.iterations={}", iterations));
  const Experiment experiment = load_experiment(a.text("FILE"), sets);
  const std::string simulator = simulator_of(a, experiment.cluster->has_one_queue());
  const Validated v = validate_experiment(experiment, a.text("backend"), simulator, seconds);
  print(fmt::format("{}\n{} on {}; profile of {}, {} at once\n",
                    experiment.title.empty() ? "(untitled)" : experiment.title,
                    pluralize(v.compiled.plan.stage_count(), "stage"),
                    pluralize(v.compiled.plan.device_count(), "device"), v.profile.machine, v.profile.threads));
  print(to_text(v.validation, kTolerance));
  if (!a.flag("no-control")) {
    flush();
    on_interrupt_say("what is printed above is done");
    const Validated control = validate_experiment(undivided(experiment), a.text("backend"), simulator, seconds);
    print("\nControl: the same in one stage on one device\n" + to_text(control.validation, kTolerance));
    print(fmt::format("\nThe scenario itself, {} on {}\n", pluralize(v.compiled.plan.stage_count(), "stage"),
                      pluralize(v.compiled.plan.device_count(), "device")) +
          verdict_text(v.validation, kTolerance));
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
    .group = "Measure",
    .example = "stagecraft validate scenarios/examples/cpu-transformer.yaml",
    .arguments =
        {{"FILE", Argument::Kind::Text, "Scenario", {}, true},
         {"-b,--backend", Argument::Kind::Text, "Backend of the real run", "cpu"},
         {"--simulator", Argument::Kind::Text,
          "Backend that simulates it (default: simgrid; fluid where links have one queue)"},
         {"-s,--set", Argument::Kind::List, "path=value, such as run.micro_batches=16; may be repeated"},
         {"--iterations", Argument::Kind::Count,
          "Iterations to run; the first is not counted (default: 25; with --network as many as --seconds has)"},
         {"--seconds", Argument::Kind::Number,
          "Time to profile, for each micro-batch size (default: 2); with --network, of the run (default: 15)"},
         {"--network", Argument::Kind::Text,
          "namespaces: build the scenario's network on this machine and run over it, with a process for each "
          "device that sleeps where it should compute"},
         queue_argument(),
         scale_argument(),
         {"--no-control", Argument::Kind::Flag, "Do not run the control: the same model in one stage on one device"},
         {"-o,--out", Argument::Kind::Text, "Folder for profile.yaml and validation.json"},
         force_argument(),
         quiet_argument()},
    .run = execute_validate,
};

}  // namespace stagecraft::commands
