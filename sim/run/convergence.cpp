#include "sim/run/convergence.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/run/profiling.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/training/task.hpp"
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

/// Time of an update, simulated and on threads. At a learning rate of 0, which takes as long and cannot diverge.
void take_times(const ConvergenceOptions& o, const Method& method, MethodRuns& runs) {
  const Scenario scenario = load_scenario(
      o.file,
      joined(joined(o.sets, method.sets), {fmt::format("run.iterations={}", kTimed), "training.learning_rate=0"}));
  const Prepared prepared = prepare(scenario);
  const Outcome simulated = run(scenario, prepared, o.simulator);
  runs.spelt = fmt::format("{}, {}, {} x {} samples", scenario.schedule, scenario.weights, scenario.micro_batches,
                           prepared.plan.mini_batch / scenario.micro_batches);
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
  const Timeline timeline = execute(scenario, prepare(scenario), o.backend, true);
  curve.diverged = timeline.learnt->diverged;
  curve.evaluations = timeline.learnt->evaluations;
  curve.losses = timeline.learnt->losses;
  return curve;
}

/// What nothing could converge with; said before any time is spent.
void check_asked(const ConvergenceOptions& o, const Scenario& base) {
  real_backend(o.backend);
  simulating_backend(o.simulator);
  if (!base.tree.has("training"))
    throw InputError("the scenario has no training, so there is nothing to converge",
                     "write training: {task: teacher, optimizer: momentum, learning_rate: 0.002}");
  if (base.emulated)
    throw InputError("with run.compute: emulated nothing is learnt, so there is nothing to converge",
                     "take run.compute: real");
  if (o.updates < std::max(3, o.evaluate_every))
    throw InputError(fmt::format("{} updates are too few to see anything", o.updates),
                     fmt::format("{} or more, or evaluate more often", std::max(3, o.evaluate_every)));
}

void check_samples(const Scenario& base, const Prepared& p) {
  const TaskDef& task = get_from(tasks::all(), "task", base.training.task);
  if (task.make(task_shape(p.model, p.plan.mini_batch), base.training.seed)->evaluation_samples() == 0)
    throw InputError(fmt::format("the task '{}' has no samples set apart for evaluation", task.name),
                     "take another training.task: stagecraft list tasks");
}

void check_known(const std::string& name) {
  std::vector<std::string> known{"sync"};
  for (const WeightsDef* def : weights::all())
    if (!def->needs_flush) known.emplace_back(def->name);
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const WeightsDef* def = find_in(weights::all(), name);
  if (def) throw InputError(fmt::format("the method with the weights '{}' is called sync", name), "write sync");
  const std::string help = suggest(name, known);
  throw InputError(fmt::format("'{}' is not a known method", name),
                   help.empty() ? "write sync, or a policy that stagecraft list weights shows" : help);
}

/// The number behind the @ of a method.
int micro_batches_of(const std::string& word, std::size_t at) {
  const char *const first = word.data() + at + 1, *const last = word.data() + word.size();
  int each = 0;
  const auto [end, error] = std::from_chars(first, last, each);
  if (error != std::errc() || end != last || each < 1)
    throw InputError(fmt::format("the method '{}' does not say how many micro-batches an update has", word),
                     "such as stash@4, or pipeoptim:as_released@4");
  return each;
}

}  // namespace

Method parse_method(const std::string& word, const Scenario& scenario) {
  const std::size_t at = word.find('@'), colon = word.substr(0, at).find(':');
  const std::string name = word.substr(0, std::min(at, colon));
  check_known(name);
  const bool sync = name == "sync", whole = sync || name == "2bw";
  const int each = at != std::string::npos ? micro_batches_of(word, at) : whole ? scenario.micro_batches : 1;
  const config::Value* size = scenario.tree.at("plan").find("micro_batch_size");
  if (!size)
    throw InputError("a comparison of methods changes plan.micro_batch_size, which this planner does not have",
                     "take the planner 'balanced'");
  const int samples = config::as_int(*size) * scenario.micro_batches;
  if (samples % each != 0)
    throw InputError(fmt::format("{} samples of an update cannot be cut into {} micro-batches", samples, each),
                     fmt::format("'{}@N' with an N that divides {}", name, samples));
  const ScheduleDef& own = get_from(schedules::all(), "schedule", scenario.schedule);
  const bool flushes = own.flushes && own.trains;
  const std::string schedule = sync ? (flushes ? scenario.schedule : "1f1b") : whole ? name : "pipedream";
  std::string policy = sync ? "flush" : name;
  if (colon != std::string::npos)
    policy = fmt::format("{{policy: {}, fidelity: {}}}", policy, word.substr(colon + 1, at - colon - 1));
  Method method{word,
                {"weights=" + policy, fmt::format("run.micro_batches={}", each),
                 fmt::format("plan.micro_batch_size={}", samples / each)}};
  // A schedule that stays keeps its options.
  if (schedule != scenario.schedule) method.sets.insert(method.sets.begin(), "run.schedule=" + schedule);
  return method;
}

Convergence converge(const ConvergenceOptions& o, const std::function<void(const std::string&)>& progress) {
  Convergence result;
  const Scenario base = load_scenario(o.file, o.sets);
  check_asked(o, base);
  const Prepared prepared = prepare(base);
  check_samples(base, prepared);
  result.samples_per_update = prepared.plan.mini_batch;
  std::vector<Method> methods;
  for (const std::string& word : o.methods) methods.push_back(parse_method(word, base));
  for (const Method& method : methods) {  // All of them first: what cannot run is said before anything is trained.
    MethodRuns& runs = result.methods.emplace_back();
    runs.name = method.name;
    take_times(o, method, runs);
  }
  for (std::size_t m = 0; m < methods.size(); ++m)
    for (int seed = 1; seed <= o.seeds; ++seed) {
      progress(fmt::format("{}: seed {} of {}", methods[m].name, seed, o.seeds));
      result.methods[m].curves.push_back(train(o, methods[m], seed));
    }
  return result;
}

}  // namespace stagecraft
