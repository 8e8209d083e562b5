// Measures a profile of an experiment, for `stagecraft profile`; for `stagecraft validate` it also simulates the
// experiment with this profile, really runs it, and compares.

#include "sim/experiment/profiling.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>
#include <set>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "sim/core/cores.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/core_sharing.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/experiment/measured_costs.hpp"
#include "sim/experiment/profile_gaps.hpp"
#include "sim/experiment/version.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/program/unfold.hpp"

namespace stagecraft {
namespace {

int cores() { return usable_cores().count(); }

}  // namespace

const BackendDef& real_backend(const std::string& name) {
  const BackendDef& def = get_from(backends::catalog(), "backend", name);
  if (!def.profile)
    throw InputError(fmt::format("the backend '{}' does not really compute, so there is nothing to measure", name),
                     "--backend cpu");
  if (const std::string why = def.why_not(); !why.empty()) throw BackendError(name + ": " + why);
  return def;
}

const BackendDef& simulating_backend(const std::string& name) {
  const BackendDef& def = get_from(backends::catalog(), "backend", name);
  if (def.clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", name),
                     "--simulator ideal, or simgrid");
  return def;
}

Profile take_profile(const CompiledExperiment& p, const std::string& backend, double seconds) {
  const Experiment& e = p.experiment;
  const Cluster& cluster = p.cluster();
  const BackendDef& def = real_backend(backend);
  std::set<int> sizes;
  std::set<DeviceId> devices;
  for (const Stage& stage : p.plan.stages) {
    for (std::size_t r = 0; r < stage.leaders.size(); ++r)
      sizes.insert(static_cast<int>(samples_at_once(stage, static_cast<int>(r))));
    devices.insert(stage.leaders.begin(), stage.leaders.end());
  }
  for (const DeviceId d : devices)
    if (cluster.devices[d].type != cluster.devices[*devices.begin()].type)
      throw InputError(fmt::format("the plan uses devices of the types '{}' and '{}', and this machine is of one",
                                   cluster.type_of(*devices.begin()).name, cluster.type_of(d).name),
                       "take a cluster of equal devices, such as threads-8");
  std::optional<UnfoldedProgram> unfolded;
  if (has_groups(p.plan)) {
    check_real_run(p, backend);
    unfolded = unfold(p.program, p.plan);
  }
  const Workload& workload = unfolded ? *unfolded->program.workload : *p.program.workload;
  ProfileRequest request{workload, {sizes.begin(), sizes.end()}};
  request.threads = static_cast<int>(devices_of(p.plan).size());  // In the program one device stands for each group.
  if (def.clock == Clock::Host) request.threads = std::min(cores(), request.threads);
  request.gpu = e.run.gpu;
  request.seconds = seconds;
  Profile profile = def.profile(request);
  profile.title = fmt::format("{} on {}", p.model().name, profile.machine.empty() ? machine() : profile.machine);
  profile.device = cluster.type_of(*devices.begin()).name;
  profile.machine = profile.machine.empty() ? machine() : machine() + ", " + profile.machine;
  profile.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  profile.commit = version();
  profile.backend = fmt::format("{} {}", backend, def.version());
  profile.precision = fmt::format("fp{:.0f}", 8 * p.model().precision.activation);
  profile.optimizer = std::string(to_text(e.training.optimizer.kind));
  return profile;
}

namespace {

/// Whether the simulator can play devices that share cores.
bool shares_cores(const CompiledExperiment& c, const std::string& simulator) {
  const auto& devices = c.cluster().devices;
  return simulator != "ideal" &&
         std::none_of(devices.begin(), devices.end(), [](const Device& d) { return d.memory.valid(); });
}

/// Plays the experiment on a machine with that many cores. Where the simulator cannot, no verdict is sure.
Outcome simulate(const CompiledExperiment& c, const std::string& simulator, int threads, Validation& v) {
  const int cores_here = cores();
  if (threads <= cores_here) return run(c, simulator);
  const std::string share =
      fmt::format("{} share {} of this machine", pluralize(threads, "thread"), pluralize(cores_here, "core"));
  if (has_groups(c.plan)) {  // The program has one device in place of each group.
    v.doubts.push_back(share + ", which is not simulated with groups");
    return run(c, simulator);
  }
  if (!shares_cores(c, simulator)) {
    v.doubts.push_back(fmt::format("{}, which '{}' does not simulate: take --simulator fluid", share, simulator));
    return run(c, simulator);
  }
  v.notes.push_back(
      fmt::format("{}: of m threads that compute, each is simulated at {}/m of its speed", share, cores_here));
  return run(on_shared_cores(c, cores_here), simulator);
}

double log_ratio_of_layers(const Profile& before, const Profile& after) {
  std::vector<double> ratios;
  for (const MeasuredLayer& a : before.layers)
    for (const MeasuredLayer& b : after.layers) {
      const double first = (a.forward + a.input_gradient + a.weight_gradient).value;
      const double second = (b.forward + b.input_gradient + b.weight_gradient).value;
      if (a.layer == b.layer && a.samples == b.samples && first > 0 && second > 0)
        ratios.push_back(std::log(second / first));
    }
  return ratios.empty() ? 0 : median(std::move(ratios));
}

}  // namespace

std::string changed_load(const Profile& before, const Profile& after) {
  constexpr double kTolerance = 0.05;  // The verdict's: a change of costs moves the simulated time as much.
  const double change = std::exp(log_ratio_of_layers(before, after)) - 1;
  if (std::abs(change) <= kTolerance) return {};
  return fmt::format("after the run, layers took {:.0f} % {} than before it: the load of this machine changed",
                     100 * std::abs(change), change > 0 ? "longer" : "less");
}

std::string shared_cores_note(const CompiledExperiment& c) {
  const int devices = static_cast<int>(devices_of(c.plan).size()), cores_here = cores();
  if (devices <= cores_here) return {};
  return fmt::format("{} share {} of this machine, which the simulated times do not know", pluralize(devices, "thread"),
                     pluralize(cores_here, "core"));
}

namespace {

void note_profile(Validated& v) {
  if (v.layers_measured < v.layers)
    v.validation.notes.push_back(fmt::format("the profile lacks {} of {}, whose costs are computed",
                                             v.layers - v.layers_measured, pluralize(v.layers, "layer")));
  if (const std::vector<std::string> gaps = unmeasured_in_groups(v.compiled); !gaps.empty())
    v.validation.doubts.push_back(fmt::format("the profile lacks {}, whose times are computed", join(gaps)));
}

/// A profile tells how long messages take by one way of carrying them.
void check_transport(const Experiment& e, Validated& v) {
  const std::string& measured = v.profile.messages;
  const char* const asked = to_text(e.run.gpu.messages);
  if (measured.empty() || measured == asked) return;
  v.validation.doubts.push_back(
      fmt::format("the profile has messages by '{}', and the run has them by '{}': measure "
                  "again with run.gpu.messages={}",
                  measured, asked, asked));
}

/// Takes over the notes of the simulation.
void put_notes(Validation& v, Validation said) {
  v.notes = std::move(said.notes);
  v.doubts = std::move(said.doubts);
}

/// Simulates the run again with its own operation times, and judges by what its threads waited for cores.
void explain_errors(Validated& v, const std::string& simulator, Clock clock) {
  const Timeline& measured = v.measured.timeline;
  if (!measured.instruction_times) return;
  add_replay(v.validation, v.compiled.program, execute(with_measured_times(v.compiled, measured), simulator));
  if (clock != Clock::Host) return;
  if (measured.core_waits.empty())
    v.validation.notes.push_back(
        "this system does not tell what threads wait for a core (/proc/thread-self/schedstat), so only the spread of "
        "the readings tells of other work on it");
  if (const std::string doubt = core_waits_doubt(v.validation.waits, v.validation.iteration.measured); !doubt.empty())
    v.validation.doubts.push_back(doubt);
}

}  // namespace

Validated validate_experiment(const Experiment& experiment, const std::string& backend, const std::string& simulator,
                              double seconds) {
  const BackendDef& def = real_backend(backend);
  simulating_backend(simulator);
  if (experiment.run.emulated)
    throw InputError("an emulated run sleeps for as long as the simulation says, so there is nothing to validate",
                     "run.compute: real");
  Experiment e = experiment;
  e.training.evaluate_every = 0;  // Looking at the weights takes time that no simulation knows.
  Profile profile;
  std::optional<CompiledExperiment> profiled_here;  // What the profile was taken of, to take it again.
  if (e.profiles.empty()) {
    CompiledExperiment c = compile(e);
    const std::string hash = e.scenario_hash;
    e = with_profile(e, take_profile(c, backend, seconds));
    e.scenario_hash = hash;
    profiled_here = std::move(c);
  }
  profile = *e.profiles.front();
  Validated v{.profile = std::move(profile), .compiled = compile(e), .simulated = {}, .measured = {}, .validation = {}};
  const Stage& stage = v.compiled.plan.stages.front();
  const DeviceTypeId type = v.compiled.cluster().devices[stage.leaders.front()].type;
  for (const LayerId layer : v.compiled.model().layers.ids()) {
    ++v.layers;
    v.layers_measured += v.compiled.experiment.costs->measured(layer, stage.shape, type, whole_samples(1)).has_value();
  }
  Validation said;
  v.simulated = simulate(v.compiled, simulator,
                         def.clock == Clock::Host ? static_cast<int>(devices_of(v.compiled.plan).size()) : 1, said);
  v.measured = run(v.compiled, backend);
  v.validation =
      compare(v.compiled.program, v.simulated.timeline, v.simulated.report, v.measured.timeline, v.compiled.cluster());
  put_notes(v.validation, std::move(said));
  explain_errors(v, simulator, def.clock);
  note_profile(v);
  check_transport(e, v);
  if (profiled_here)
    if (const std::string changed = changed_load(v.profile, take_profile(*profiled_here, backend, seconds));
        !changed.empty())
      v.validation.doubts.push_back(changed);
  return v;
}

}  // namespace stagecraft
