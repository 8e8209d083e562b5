#include "sim/experiment/diagnosis/memory_remedies.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/group.hpp"
#include "sim/plan/planner.hpp"
#include "sim/program/check.hpp"
#include "sim/report/diagnosis.hpp"

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

/// More micro-batches in the same batch, each of half the size, and a quarter, and so on.
Remedies smaller_micro_batches(const MemoryRemedy& from) {
  Remedies remedies;
  const Experiment& e = from.experiment;
  if (!e.plan.has_micro_batch_size()) return remedies;
  for (int size = e.plan.micro_batch_size, count = e.run.micro_batches; size % 2 == 0;) {
    size /= 2, count *= 2;
    if (size < e.plan.replicas) break;
    remedies.push_back(from);
    const int written = e.plan.per_replica ? size / e.plan.replicas : size;
    remedies.back().sets.push_back(fmt::format("plan.micro_batch_size={}", written));
    remedies.back().sets.push_back(fmt::format("run.micro_batches={}", count));
    remedies.back().experiment.plan.micro_batch_size = size;
    remedies.back().experiment.run.micro_batches = count;
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
Remedies other_schedules(const Experiment& e) {
  Remedies remedies;
  for (const char* name : {"1f1b", "v-half", "v-min"}) {
    const ScheduleDef* def = find_in(schedules::catalog(), name);
    if (!def || def == e.schedule.def || !e.schedule.def->trains) continue;
    try {
      remedies.push_back({{fmt::format("run.schedule={}", name)}, with_order(e, schedule_spec(*def), e.weights)});
    } catch (const InputError&) {  // It does not go together with these weights.
    }
  }
  return remedies;
}

/// The need of the device that is closest to its limit, and that limit; nothing where the plan cannot run.
struct FullestDevice {
  std::string name;
  Bytes need, capacity;
};

std::optional<FullestDevice> fullest_device(const Experiment& e) try {
  const CompiledExperiment c = compile(e);
  const IdVector<DeviceId, Bytes> needs = memory_needs(c.program);
  FullestDevice fullest;
  double fill = -1;
  for (const DeviceId d : needs.ids()) {
    const Bytes capacity = c.cluster().type_of(d).usable_memory();
    if (capacity.value <= 0 || needs[d] / capacity <= fill) continue;
    fill = needs[d] / capacity;
    fullest = {c.cluster().devices[d].name, needs[d], capacity};
  }
  return fullest;
} catch (const InputError&) {  // The schedule or the planner does not take this option.
  return {};
} catch (const Infeasible&) {
  return {};
}

/// "--set plan.recompute=full (h100-0.gpu0 needs 41 GiB of 80 GiB)" of the first that fits; empty where none does.
std::string first_that_fits(const Remedies& remedies, int& tried) {
  for (const MemoryRemedy& remedy : remedies) {
    ++tried;
    if (const auto fullest = fullest_device(remedy.experiment))
      return fmt::format("{} ({} needs {} of {})", options_text({.sets = remedy.sets, .change = {}}), fullest->name,
                         to_text(fullest->need), to_text(fullest->capacity));
  }
  return {};
}

std::string advice(const Experiment& e) {
  const MemoryRemedy unchanged{{}, e};
  const Remedies more_recomputation = recomputing(e);
  const MemoryRemedy& most_recomputing = more_recomputation.empty() ? unchanged : more_recomputation.back();
  int tried = 0;
  std::vector<std::string> fitting;
  const auto add = [&](const Remedies& remedies) {
    if (std::string text = first_that_fits(remedies, tried); !text.empty()) fitting.push_back(std::move(text));
  };
  for (const Remedies& kind : {less_planned_memory(e), more_recomputation, smaller_micro_batches(unchanged),
                               divided_states(unchanged), other_schedules(e)})
    add(kind);
  if (fitting.empty()) add(smaller_micro_batches(most_recomputing));
  if (fitting.empty()) add(divided_states(most_recomputing));
  if (!fitting.empty()) return (fitting.size() == 1 ? "this fits: " : "each of these fits: ") + join(fitting, ", ");
  if (tried == 0) return {};
  return fmt::format("{} of recomputation, micro-batch size, divided states and schedule tried, and none fits",
                     pluralize(tried, "change"));
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
  append(less_planned_memory(e));
  const Remedies more_recomputation = recomputing(e);
  const MemoryRemedy most_recomputing = more_recomputation.empty() ? remedies.front() : more_recomputation.back();
  append(more_recomputation);
  append(smaller_micro_batches(most_recomputing));
  append(divided_states(most_recomputing));
  return remedies;
}

CompiledExperiment compile_or_advise(const Experiment& e) try { return compile(e); } catch (const Infeasible& problem) {
  if (problem.code() != "memory" || searches(e)) throw;
  Diagnostic advised = problem.problem();
  const std::string text = advice(e);
  if (!text.empty()) advised.help += (advised.help.empty() ? "" : "; ") + text;
  throw Infeasible(std::move(advised));
}

}  // namespace stagecraft
