#include "sim/run/convergence.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

constexpr int kTimed = 60;  ///< Iterations of which the time of an update is taken.

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes most_memory(const Report& report) {
  Bytes most;
  for (const DeviceReport& d : report.devices) most = std::max(most, d.memory.total);
  return most;
}

/// Time of an update, simulated and on threads.
void take_times(const ConvergenceOptions& o, const Method& method, MethodRuns& runs) {
  const Scenario scenario =
      load_scenario(o.file, joined(joined(o.sets, method.sets), {fmt::format("run.iterations={}", kTimed)}));
  const Prepared prepared = prepare(scenario);
  const Outcome simulated = run(scenario, prepared, o.simulator);
  runs.spelt = fmt::format("{}, {}, {} micro-batches", scenario.schedule, scenario.weights, scenario.micro_batches);
  runs.update = simulated.report.period;
  runs.fill = std::max(Seconds{0}, simulated.report.makespan - simulated.report.period);
  runs.memory = most_memory(simulated.report);
  if (o.measure) runs.measured = run(scenario, prepared, o.backend).report.period;
}

Curve train(const ConvergenceOptions& o, const Method& method, int seed) {
  const Scenario scenario = load_scenario(
      o.file, joined(joined(o.sets, method.sets), {fmt::format("run.iterations={}", o.updates),
                                                   fmt::format("training.evaluate_every={}", o.evaluate_every),
                                                   fmt::format("training.seed={}", seed)}));
  Curve curve;
  curve.seed = static_cast<std::uint64_t>(seed);
  try {
    const Timeline timeline = execute(scenario, prepare(scenario), o.backend, true);
    curve.evaluations = timeline.learnt->evaluations;
    curve.losses = timeline.learnt->losses;
  } catch (const Infeasible& e) {
    if (e.problem().code != "diverged") throw;
    curve.diverged = true;
  }
  return curve;
}

}  // namespace

Method parse_method(const std::string& word, const Scenario& scenario) {
  const std::size_t at = word.find('@'), colon = word.find(':');
  const std::string name = word.substr(0, std::min(at, colon));
  const ScheduleDef& own = get_from(schedules::all(), "schedule", scenario.schedule);
  const bool whole = name == "sync" || name == "2bw";
  int each = whole ? scenario.micro_batches : 1;
  if (at != std::string::npos) {
    each = std::atoi(word.c_str() + at + 1);
    if (each < 1)
      throw InputError(fmt::format("the method '{}' does not say how many micro-batches an update has", word),
                       "such as stash@4");
  }
  const config::Value* size = scenario.tree.at("plan").find("micro_batch_size");
  if (!size)
    throw InputError("a comparison of methods changes plan.micro_batch_size, which this planner does not have",
                     "take the planner 'balanced'");
  const int samples = config::as_int(*size) * scenario.micro_batches;
  if (samples % each != 0)
    throw InputError(fmt::format("{} samples of an update cannot be cut into {} micro-batches", samples, each));
  Method method{word, {}};
  std::string schedule = name == "2bw" ? "2bw" : "pipedream";
  if (name == "sync")
    schedule = own.flushes ? scenario.schedule : "1f1b";
  else
    get_from(weights::all(), "weights policy", name);
  std::string policy = name == "sync" ? "flush" : name;
  if (colon != std::string::npos) {
    const std::string fidelity = word.substr(colon + 1, at == std::string::npos ? at : at - colon - 1);
    policy = fmt::format("{{policy: {}, fidelity: {}}}", name, fidelity);
  }
  method.sets = {"run.schedule=" + schedule, "weights=" + policy, fmt::format("run.micro_batches={}", each),
                 fmt::format("plan.micro_batch_size={}", samples / each)};
  return method;
}

Convergence converge(const ConvergenceOptions& o, const std::function<void(const std::string&)>& progress) {
  Convergence result;
  const Scenario base = load_scenario(o.file, o.sets);
  if (!base.tree.has("training"))
    throw InputError("the scenario has no training, so there is nothing to converge",
                     "write training: {task: teacher, optimizer: momentum, learning_rate: 0.002}");
  result.samples_per_update = prepare(base).plan.mini_batch;
  std::vector<Method> methods;
  for (const std::string& word : o.methods) methods.push_back(parse_method(word, base));
  for (const Method& method : methods) {
    MethodRuns runs;
    runs.name = method.name;
    take_times(o, method, runs);
    for (int seed = 1; seed <= o.seeds; ++seed) {
      progress(fmt::format("{}: seed {} of {}", method.name, seed, o.seeds));
      runs.curves.push_back(train(o, method, seed));
    }
    result.methods.push_back(std::move(runs));
  }
  return result;
}

}  // namespace stagecraft
