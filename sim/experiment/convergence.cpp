// Trains with several methods and seeds, and takes the time of an update, for `stagecraft convergence`.

#include "sim/experiment/convergence.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/activity.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/profiling.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/training/task.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

constexpr int kTimedIterations = 60;  ///< Iterations of which the time of an update is taken.

Bytes most_memory(const Report& report) {
  Bytes peak;
  for (const DeviceReport& d : report.devices) peak = std::max(peak, d.memory.total);
  return peak;
}

Experiment experiment_of(const Experiment& base, const Method& method, int iterations) {
  Experiment e = variant_of(base);
  e.run.lowering.iterations = iterations;
  e.run.micro_batches = method.micro_batches;
  e.plan.micro_batch_size = method.micro_batch_size;
  return with_order(e, method.schedule, method.weights);
}

/// Time of an update, simulated and on threads. The learning rate is 0, which takes as long and cannot diverge.
void take_times(const Experiment& base, const ConvergenceOptions& o, const Method& method, MethodRuns& runs) {
  Experiment e = experiment_of(base, method, kTimedIterations);
  e.training.optimizer.learning_rate = 0;
  const CompiledExperiment c = compile(e);
  const Outcome simulated = run(c, o.simulator);
  runs.spelt = fmt::format("{}, {}, {} x {}", e.schedule.name(), e.weights.name(), e.run.micro_batches,
                           pluralize(c.plan.mini_batch / e.run.micro_batches, "sample"));
  runs.update = simulated.report.period;
  runs.fill = std::max(Seconds{0}, simulated.report.makespan - simulated.report.period);
  runs.memory = most_memory(simulated.report);
  if (o.measure) runs.measured = run(c, o.backend).report.period;
}

Curve train(const Experiment& base, const ConvergenceOptions& o, const Method& method, int seed) {
  Experiment e = experiment_of(base, method, o.updates);
  e.training.evaluate_every = o.evaluate_every;
  e.training.seed = static_cast<std::uint64_t>(seed);
  Curve curve;
  curve.seed = e.training.seed;
  const Timeline timeline = execute(compile(e), o.backend, true);
  curve.diverged = timeline.learnt->diverged;
  curve.evaluations = timeline.learnt->evaluations;
  curve.losses = timeline.learnt->losses;
  return curve;
}

/// Refuses settings with which nothing can converge, before any run.
void check_asked(const ConvergenceOptions& o, const Experiment& base) {
  real_backend(o.backend);
  simulating_backend(o.simulator);
  if (!base.has_training)
    throw InputError("the scenario has no training, so there is nothing to converge",
                     "write training: {task: teacher, optimizer: momentum, learning_rate: 0.002}");
  if (base.run.emulated)
    throw InputError("with run.compute: emulated nothing is learnt, so there is nothing to converge",
                     "take run.compute: real");
  if (o.updates < std::max(3, o.evaluate_every))
    throw InputError(
        fmt::format("{} {} too few to see anything", pluralize(o.updates, "update"), o.updates == 1 ? "is" : "are"),
        fmt::format("{} or more, or evaluate more often", std::max(3, o.evaluate_every)));
}

void check_samples(const CompiledExperiment& c) {
  const Training& training = c.experiment.training;
  const TaskDef& task = get_from(tasks::catalog(), "task", training.task);
  if (task.make(task_shape(c.model(), c.plan.mini_batch), training.seed)->evaluation_samples() == 0)
    throw InputError(fmt::format("the task '{}' has no samples set apart for evaluation", task.name),
                     "take another training.task: stagecraft list tasks");
}

void check_known(const std::string& name) {
  std::vector<std::string> policy_names{"sync"};
  for (const WeightsDef* def : weights::catalog())
    if (!def->needs_flush) policy_names.emplace_back(def->name);
  if (std::find(policy_names.begin(), policy_names.end(), name) != policy_names.end()) return;
  const WeightsDef* def = find_in(weights::catalog(), name);
  if (def) throw InputError(fmt::format("the method with the weights '{}' is called sync", name), "write sync");
  if (const ScheduleDef* schedule = find_in(schedules::catalog(), name); schedule && !schedule->flushes)
    throw InputError(fmt::format("'{}' is a schedule, not a method", name),
                     fmt::format("its weights are the method: write {}", schedule->weights));
  const std::string help = suggest(name, policy_names);
  throw InputError(fmt::format("'{}' is not a known method", name),
                   help.empty() ? "write sync, or a policy that stagecraft list weights shows" : help);
}

/// The number after the @ of a method.
int micro_batches_of(const std::string& word, std::size_t at) {
  const char *const first = word.data() + at + 1, *const last = word.data() + word.size();
  int each = 0;
  const auto [end, error] = from_chars(first, last, each);
  if (error != std::errc() || end != last || each < 1)
    throw InputError(fmt::format("the method '{}' does not say how many micro-batches an update has", word),
                     "such as stash@4, or pipeoptim:as_released@4");
  return each;
}

}  // namespace

Method parse_method(const std::string& word, const Experiment& experiment) {
  const std::size_t at = word.find('@'), colon = word.substr(0, at).find(':');
  const std::string name = word.substr(0, std::min(at, colon));
  check_known(name);
  const bool sync = name == "sync", whole = sync || name == "2bw";
  const int each = at != std::string::npos ? micro_batches_of(word, at) : whole ? experiment.run.micro_batches : 1;
  if (!experiment.plan.has_micro_batch_size())
    throw InputError("a comparison of methods changes plan.micro_batch_size, which this planner does not have",
                     "take the planner 'balanced'");
  const int samples = experiment.plan.micro_batch_size * experiment.run.micro_batches;
  if (samples % each != 0)
    throw InputError(fmt::format("{} of an update cannot be cut into {}", pluralize(samples, "sample"),
                                 pluralize(each, "micro-batch", "es")),
                     fmt::format("'{}@N' with an N that divides {}", name, samples));
  const ScheduleSpec& configured = experiment.schedule;
  const std::string schedule = sync ? (configured.flushes() ? configured.name() : "1f1b") : whole ? name : "pipedream";
  const std::string fidelity = colon == std::string::npos ? "" : word.substr(colon + 1, at - colon - 1);
  const Where where{fmt::format("<--methods {}>", word), 1, static_cast<int>(colon) + 2};
  // A schedule that stays keeps its options.
  return {
      word,
      schedule == configured.name() ? configured : schedule_spec(get_from(schedules::catalog(), "schedule", schedule)),
      weights_spec(sync ? "flush" : name, fidelity, where), each, samples / each};
}

Convergence converge(const Experiment& base, const ConvergenceOptions& o, const std::function<void()>& before_each) {
  Convergence result;
  check_asked(o, base);
  const CompiledExperiment compiled = compile(base);
  check_samples(compiled);
  result.samples_per_update = compiled.plan.mini_batch;
  if (o.measure)
    if (std::string note = shared_cores_note(compiled); !note.empty()) result.notes.push_back(std::move(note));
  std::vector<Method> methods;
  for (const std::string& word : o.methods) methods.push_back(parse_method(word, base));
  for (const Method& method : methods) {  // All of them first: what cannot run is said before anything is trained.
    MethodRuns& runs = result.methods.emplace_back();
    runs.name = method.name;
    take_times(base, o, method, runs);
  }
  Activity activity("training");
  result.runs_asked = static_cast<int>(std::ssize(methods)) * o.seeds;
  activity.count(0, "runs", result.runs_asked);
  try {
    for (int seed = 1; seed <= o.seeds; ++seed)  // All methods with one seed first, so that a part compares them all.
      for (std::size_t m = 0; m < methods.size(); ++m) {
        before_each();
        activity.note(fmt::format("{}, seed {}", methods[m].name, seed));
        result.methods[m].curves.push_back(train(base, o, methods[m], seed));
        activity.count_one();
      }
  } catch (const Stopped&) {
    if (result.methods.front().curves.empty()) throw;
    std::erase_if(result.methods, [](const MethodRuns& m) { return m.curves.empty(); });
  }
  return result;
}

}  // namespace stagecraft
