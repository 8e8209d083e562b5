// Changes with which a plan fits in memory: searches for the least one, for the error of a plan that does not fit, and
// lists those that `stagecraft plan` tries.

#include "sim/diagnosis/memory_remedies.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/framework_check.hpp"
#include "sim/experiment/fold_replicas.hpp"
#include "sim/planners/shared/group.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/program/check.hpp"
#include "sim/result/diagnosis.hpp"

namespace stagecraft {
namespace {

using Remedies = std::vector<MemoryRemedy>;

bool has_field(const Experiment& e, const char* field) { return e.plan.planner->fields->find(field) != nullptr; }

/// The planner plans for a part of the smallest memory.
Remedies less_planned_memory(const Experiment& e) {
  Bytes smallest_memory{kInfinity};
  for (const DeviceId d : devices_to_use(e.plan, *e.cluster)) {
    const Bytes there = e.cluster->type_of(d).usable_memory();
    if (there.value > 0) smallest_memory = std::min(smallest_memory, there);
  }
  Remedies remedies;
  if (!has_field(e, "memory") || e.plan.memory || smallest_memory.value == kInfinity) return remedies;
  for (const double share : {0.95, 0.85, 0.7}) {
    const Bytes memory{std::floor(share * smallest_memory.value)};
    remedies.push_back({{fmt::format("plan.memory={:.0f} B", memory.value)}, e});
    remedies.back().experiment.plan.memory = memory;
  }
  return remedies;
}

/// Limits for the messages on their way, which keep the plan.
Remedies fewer_messages(const Experiment& e) {
  Remedies remedies;
  if (!e.run.lowering.rendezvous || e.run.buffers) return remedies;
  for (const int buffers : {4, 2, 1}) {
    remedies.push_back({{fmt::format("run.buffers={}", buffers)}, e});
    remedies.back().experiment.run.buffers = message_buffers(buffers);
  }
  return remedies;
}

/// More recomputation, the least first.
Remedies recomputing(const Experiment& e) {
  Remedies remedies;
  if (!has_field(e, "recompute") || !e.plan.recompute) return remedies;
  const std::vector<Recomputation> kinds = recomputations(*e.model);
  const auto now = std::find(kinds.begin(), kinds.end(), *e.plan.recompute);
  for (auto kind = now; kind != kinds.end(); ++kind) {
    if (kind == now) continue;
    remedies.push_back({{fmt::format("plan.recompute={}", to_text(*kind))}, e});
    remedies.back().experiment.plan.recompute = *kind;
  }
  return remedies;
}

/// A stage that recomputes its layers keeps no inputs of modules, which could go to host memory.
void leave_modules_out(MemoryRemedy& remedy) {
  std::optional<Offload>& offload = remedy.experiment.plan.offload;
  if (!offload || offload->modules.empty() || recomputes_by_modules(*remedy.experiment.plan.recompute)) return;
  offload->modules.clear(), offload->activations = 0, offload->selective = false;
  remedy.sets.push_back("plan.offload=" + to_text(*offload));
}

/// Every kind of recomputation that the planner knows and the plan does not have, the least computation first. The
/// stage as a whole (full) may need more memory than its layers one after the other, or less.
Remedies other_recomputation(const MemoryRemedy& from) {
  Remedies remedies;
  const Experiment& e = from.experiment;
  const config::Field* field = e.plan.planner->fields->find("recompute");
  if (!field || !e.plan.recompute) return remedies;
  const std::vector<std::string> words = field->choices();
  for (const Recomputation kind :
       {Recomputation::Selective, Recomputation::Half, Recomputation::Full, Recomputation::Layers}) {
    const std::string word(to_text(kind));
    if (kind == *e.plan.recompute || std::find(words.begin(), words.end(), word) == words.end()) continue;
    remedies.push_back(from);
    remedies.back().sets.push_back("plan.recompute=" + word);
    remedies.back().experiment.plan.recompute = kind;
    leave_modules_out(remedies.back());
  }
  return remedies;
}

/// The least shares of stashes in host memory, where there is some.
Remedies offloaded(const MemoryRemedy& from) {
  Remedies remedies;
  const Experiment& e = from.experiment;
  const bool recomputes_all = e.plan.recompute == Recomputation::Full;
  Offload offload = e.plan.offload.value_or(Offload{});
  const bool is_new = !e.cluster->memories.empty() && !offload.moves_stashes();
  if (!is_new || recomputes_all || !e.run.lowering.overlap) return remedies;
  offload.selective = true;
  remedies.push_back(from);
  remedies.back().experiment.plan.offload = offload;
  remedies.back().sets.push_back("plan.offload=" + to_text(offload));
  return remedies;
}

/// More micro-batches in the same batch, each of half the size, and a quarter, and so on.
Remedies smaller_micro_batches(const MemoryRemedy& from) {
  Remedies remedies;
  const Experiment& e = from.experiment;
  if (!e.plan.has_micro_batch_size()) return remedies;
  for (int size = e.plan.micro_batch_size, count = e.run.micro_batches; size % 2 == 0;) {
    size /= 2, count *= 2;
    if (e.plan.share == Share::Samples && size % e.plan.replicas != 0) break;
    remedies.push_back(from);
    Experiment& changed = remedies.back().experiment;
    changed.plan.micro_batch_size = size;
    changed.run.micro_batches = count;
    remedies.back().sets.push_back(fmt::format("plan.micro_batch_size={}", changed.plan.written_micro_batch_size()));
    remedies.back().sets.push_back(fmt::format("run.micro_batches={}", count));
  }
  return remedies;
}

/// Replicas divide the optimizer's state, then gradients too, then weights too.
Remedies divided_states(const MemoryRemedy& from) {
  Remedies remedies;
  const PlanSpec& plan = from.experiment.plan;
  if (!has_field(from.experiment, "shard") || plan.replicas * plan.group.context < 2) return remedies;
  for (const StateSharding kind : {StateSharding::Optimizer, StateSharding::Gradients, StateSharding::Weights}) {
    if (kind <= plan.sharding) continue;
    remedies.push_back(from);
    remedies.back().sets.push_back(fmt::format("plan.shard={}", to_text(kind)));
    remedies.back().experiment.plan.sharding = kind;
  }
  return remedies;
}

/// Schedules with fewer micro-batches in flight on the same stages.
Remedies other_schedules(const MemoryRemedy& from) {
  Remedies remedies;
  const Experiment& e = from.experiment;
  for (const char* name : {"1f1b", "v-half", "v-min"}) {
    const ScheduleDef* def = find_in(schedules::catalog(), name);
    if (!def || def == e.schedule.def || !e.schedule.def->trains) continue;
    try {
      remedies.push_back({from.sets, with_order(e, schedule_spec(*def), e.weights)});
      remedies.back().sets.push_back(fmt::format("run.schedule={}", name));
    } catch (const InputError&) {  // It does not go together with these weights.
    }
  }
  return remedies;
}

/// The need of the device that is closest to its limit, and that limit; nothing where the plan cannot run, here or in
/// the framework of the software stack.
struct FullestDevice {
  std::string name;
  Bytes need, capacity;
};

std::optional<FullestDevice> fullest_device(const Experiment& e, const FrameworkCheck& framework) try {
  const PlannedExperiment planned = plan_experiment(e);
  if (!framework.accepts(planned)) return {};
  const CompiledExperiment c = compile_folded(planned, nullptr);
  const IdVector<DeviceId, MemoryNeed> needs = memory_peaks(c);
  FullestDevice fullest;
  double fill = -1;
  for (const DeviceId d : needs.ids()) {
    const Bytes capacity = c.cluster().type_of(d).usable_memory();
    if (capacity.value <= 0 || needs[d].total / capacity <= fill) continue;
    fill = needs[d].total / capacity;
    fullest = {c.cluster().devices[d].name, needs[d].total, capacity};
  }
  return fullest;
} catch (const InputError&) {  // The schedule or the planner does not take this option.
  return {};
} catch (const Infeasible&) {
  return {};
}

/// Looks for the least changes that make a plan fit.
class MemoryAdvice {
 public:
  explicit MemoryAdvice(const Experiment& e) : unchanged_{{}, e}, framework_(e) {
    const double ops = 2.0 * e.run.lowering.iterations * e.run.micro_batches * e.plan.replicas *
                       e.plan.stages.value_or(static_cast<int>(std::ssize(e.cluster->devices)));
    constexpr double kMostOps = 3e6;  // A few seconds.
    constexpr int kFewest = 20, kMost = 400;
    may_try_ = std::clamp(static_cast<int>(kMostOps / std::max(ops, 1.0)), kFewest, kMost);
  }

  /// "this fits: --set plan.recompute=full (h100-0.gpu0 needs 41 GiB of 80 GiB)"; else how much was tried.
  std::string text() {
    add(less_planned_memory(unchanged_.experiment));
    for (std::size_t count = 1; count <= std::size(kKinds) && fitting_.empty(); ++count) combine(0, count, {});
    if (!fitting_.empty())
      return (fitting_.size() == 1 ? "this fits: " : "each of these fits: ") + join(fitting_, ", ");
    if (tried_ == 0) return {};
    return fmt::format(
        "{} of {}recomputation, micro-batch size, divided states and schedule tried, alone and together, "
        "and none fits",
        pluralize(tried_, "change"), unchanged_.experiment.cluster->memories.empty() ? "" : "host memory, ");
  }

 private:
  using Kind = Remedies (*)(const MemoryRemedy&);
  static constexpr Kind kKinds[] = {offloaded, other_recomputation, smaller_micro_batches, divided_states,
                                    other_schedules};

  /// All sets of `count` kinds of changes, from the kind `first` on.
  void combine(std::size_t first, std::size_t count, std::vector<Kind> kinds) {
    if (kinds.size() == count) {
      if (count == 1 || largest_changes_fit(unchanged_, kinds)) first_fit(unchanged_, kinds);
      return;
    }
    for (std::size_t k = first; k < std::size(kKinds); ++k) {
      kinds.push_back(kKinds[k]);
      combine(k + 1, count, kinds);
      kinds.pop_back();
    }
  }

  /// Whether the plan fits with the changes of each kind that save most. Of recomputation and schedules each may be.
  bool largest_changes_fit(const MemoryRemedy& from, std::span<const Kind> kinds) {
    if (kinds.empty()) return fits(from).has_value();
    Remedies remedies = kinds.front()(from);
    const bool grows = kinds.front() == smaller_micro_batches || kinds.front() == divided_states;
    if (grows) {
      const auto last = std::find_if(remedies.rbegin(), remedies.rend(),
                                     [&](const MemoryRemedy& r) { return framework_.accepts(r.experiment); });
      remedies = last == remedies.rend() ? Remedies{} : Remedies{*last};
    }
    return std::any_of(remedies.begin(), remedies.end(),
                       [&](const MemoryRemedy& r) { return largest_changes_fit(r, kinds.subspan(1)); });
  }

  bool first_fit(const MemoryRemedy& from, std::span<const Kind> kinds) {
    if (kinds.empty()) return add({from});
    const Remedies remedies = kinds.front()(from);
    return std::any_of(remedies.begin(), remedies.end(),
                       [&](const MemoryRemedy& r) { return first_fit(r, kinds.subspan(1)); });
  }

  std::optional<FullestDevice> fits(const MemoryRemedy& remedy) {
    if (tried_ >= may_try_) return {};
    ++tried_;
    return fullest_device(remedy.experiment, framework_);
  }

  /// Adds the first that fits.
  bool add(const Remedies& remedies) {
    for (const MemoryRemedy& remedy : remedies) {
      const auto fullest = fits(remedy);
      if (!fullest) continue;
      fitting_.push_back(fmt::format("{} ({} needs {} of {})", options_text({.sets = remedy.sets, .change = {}}),
                                     fullest->name, to_text(fullest->need), to_text(fullest->capacity)));
      return true;
    }
    return false;
  }

  MemoryRemedy unchanged_;
  FrameworkCheck framework_;
  std::vector<std::string> fitting_;
  int tried_ = 0, may_try_;
};

/// "recompute: full, ", or layers where the framework recomputes layer by layer; empty where the plan has as much
/// already, or can have no more.
std::string recompute_help(const Experiment& e) {
  if (e.plan.recompute == Recomputation::Full ||
      (e.plan.recompute == Recomputation::Layers && e.plan.recompute_layers == 0))
    return {};
  const FrameworkCheck framework(e);
  for (const Recomputation kind : {Recomputation::Full, Recomputation::Layers}) {
    Experiment changed = e;
    changed.plan.recompute = kind;
    if (framework.accepts(changed)) return fmt::format("recompute: {}, ", to_text(kind));
  }
  return {};
}

/// The help of check_memory(), which does not know the plan, without what the plan has already.
std::string possible_help(std::string help, const Experiment& e) {
  const auto replace = [&](const std::string& phrase, const std::string& other) {
    if (const std::size_t at = help.find(phrase); at != std::string::npos) help.replace(at, phrase.size(), other);
  };
  replace("recompute: full, ", recompute_help(e));
  if (!e.plan.has_micro_batch_size() || e.plan.micro_batch_size <= e.plan.replicas)
    replace("smaller micro-batches, ", "");
  return help;
}

}  // namespace

std::vector<DeviceId> devices_to_use(const PlanSpec& plan, const Cluster& cluster) {
  if (plan.devices) return *plan.devices;
  std::vector<DeviceId> devices;
  for (const DeviceId d : cluster.devices.ids()) devices.push_back(d);
  return devices;
}

bool searches(const Experiment& e) {
  const std::string_view planner = e.plan.planner->name;
  return e.schedule.def->name == "synthesised" ||
         (planner != "balanced" && planner != "explicit" && planner != "layout");
}

std::vector<MemoryRemedy> memory_remedies(const Experiment& e) {
  Remedies remedies{{{}, e}};
  const auto append = [&](const Remedies& more) { remedies.insert(remedies.end(), more.begin(), more.end()); };
  append(fewer_messages(e));
  append(less_planned_memory(e));
  append(offloaded(remedies.front()));
  const Remedies more_recomputation = recomputing(e);
  const MemoryRemedy most_recomputing = more_recomputation.empty() ? remedies.front() : more_recomputation.back();
  append(more_recomputation);
  append(smaller_micro_batches(most_recomputing));
  append(divided_states(most_recomputing));
  return remedies;
}

CompiledExperiment compile_or_advise(
    const Experiment& e, const std::function<CompiledExperiment(const PlannedExperiment&)>& compile_planned) try {
  return compile_planned(plan_experiment(e));
} catch (const Infeasible& problem) {
  if (problem.code() != "memory" || searches(e)) throw;
  Diagnostic advised = problem.problem();
  advised.help = possible_help(std::move(advised.help), e);
  const std::string text = MemoryAdvice(e).text();
  if (!text.empty()) advised.help += (advised.help.empty() ? "" : "; ") + text;
  throw Infeasible(std::move(advised));
}

CompiledExperiment compile_or_advise(const Experiment& e) {
  return compile_or_advise(e, [](const PlannedExperiment& p) { return compile(p); });
}

}  // namespace stagecraft
