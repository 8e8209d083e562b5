#include "sim/experiment/profiling.hpp"

#include <algorithm>
#include <ctime>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "sim/experiment/limits.hpp"
#include "sim/experiment/version.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/program/unfold.hpp"

namespace stagecraft {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

int cores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

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
    for (std::size_t r = 0; r < stage.devices().size(); ++r)
      sizes.insert(static_cast<int>(samples_at_once(stage, static_cast<int>(r))));
    devices.insert(stage.devices().begin(), stage.devices().end());
  }
  for (const DeviceId d : devices)
    if (cluster.devices[d].type != cluster.devices[*devices.begin()].type)
      throw InputError(fmt::format("the plan uses devices of the types '{}' and '{}', and this machine is of one",
                                   cluster.type_of(*devices.begin()).name, cluster.type_of(d).name),
                       "take a cluster of equal devices, such as threads-8");
  ProfileRequest request{*p.program.workload, {sizes.begin(), sizes.end()}};
  request.threads = static_cast<int>(devices.size());
  if (def.clock == Clock::Host) request.threads = std::min(cores(), request.threads);
  request.gpu = e.run.gpu;
  request.seconds = seconds;
  Profile profile = def.profile(request);
  profile.title = fmt::format("{} on {}", p.model().name, profile.machine.empty() ? machine() : profile.machine);
  profile.device = cluster.type_of(*devices.begin()).name;
  profile.machine = profile.machine.empty() ? machine() : machine() + ", " + profile.machine;
  profile.date = today();
  profile.commit = version();
  profile.backend = fmt::format("{} {}", backend, def.version());
  profile.precision = fmt::format("fp{:.0f}", 8 * p.model().precision.activation);
  profile.optimizer = std::string(to_text(e.training.optimizer.kind));
  return profile;
}

namespace {

/// A profile has times of whole layers, which say nothing about the parts that the devices of a group compute.
Profile without_measurements(const Plan& plan) {
  Profile profile;
  profile.machine = machine();
  profile.threads = std::min(cores(), plan.used_devices());
  return profile;
}

}  // namespace

Validated validate_experiment(const Experiment& experiment, const std::string& backend, const std::string& simulator,
                              double seconds) {
  real_backend(backend);
  simulating_backend(simulator);
  if (experiment.run.emulated)
    throw InputError("an emulated run sleeps for as long as the simulation says, so there is nothing to validate",
                     "run.compute: real");
  Experiment e = experiment;
  e.training.evaluate_every = 0;  // Looking at the weights takes time that no simulation knows.
  Profile profile;
  if (CompiledExperiment c = compile(e); has_groups(c.plan)) {
    check_real_run(c, backend);
    profile = without_measurements(c.plan);
  } else if (!e.profile) {
    const std::string hash = e.scenario_hash;
    e = with_profile(e, take_profile(c, backend, seconds));
    e.scenario_hash = hash;
  }
  if (e.profile) profile = *e.profile;
  Validated v{.profile = std::move(profile), .compiled = compile(e), .simulated = {}, .measured = {}, .validation = {}};
  for (const Layer& layer : v.compiled.model().layers) {
    ++v.layers;
    v.layers_measured += v.profile.find(signature(layer.operations, v.compiled.model().precision), 1).has_value();
  }
  v.simulated = run(v.compiled, simulator);
  v.measured = run(v.compiled, backend);
  v.validation =
      compare(v.compiled.program, v.simulated.timeline, v.simulated.report, v.measured.timeline, v.compiled.cluster());
  return v;
}

}  // namespace stagecraft
