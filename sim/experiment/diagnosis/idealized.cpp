#include "sim/experiment/diagnosis/idealized.hpp"

#include <algorithm>
#include <set>

#include "backends/backend.hpp"
#include "sim/experiment/group_changes.hpp"
#include "sim/plan/overlap.hpp"

namespace stagecraft {
namespace {

Seconds duration(const StageCost& cost, InstructionKind kind) {
  switch (kind) {
    case InstructionKind::Forward:
      return cost.forward;
    case InstructionKind::Backward:
      return cost.backward;
    case InstructionKind::InputGradient:
      return cost.input_gradient;
    case InstructionKind::WeightGradient:
      return cost.weight_gradient;
    case InstructionKind::Recompute:
      return cost.recompute;
    case InstructionKind::Update:
      return cost.update;
    default:
      return {};
  }
}

/// Durations of computation if every stage ran on the fastest type of device that the plan uses.
IdVector<InstructionId, Seconds> fastest_durations(const CompiledExperiment& c) {
  IdVector<InstructionId, Seconds> durations;
  for (const Instruction& i : c.program.instructions) durations.push_back(i.duration);
  std::set<DeviceTypeId> types;
  for (const Stage& stage : c.plan.stages)
    for (const DeviceId d : stage.devices()) types.insert(c.cluster().devices[d].type);
  if (types.size() < 2) return durations;
  const CostTable& table = *c.experiment.costs;
  std::map<std::pair<StageId, DeviceId>, std::pair<const StageCost*, StageCost>> costs;  // Own cost, and the fastest.
  for (const StageId s : c.plan.stages.ids()) {
    const Stage& stage = c.plan.stages[s];
    for (std::size_t r = 0; r < stage.devices().size(); ++r) {
      const auto samples = static_cast<double>(samples_at_once(stage, static_cast<int>(r)));
      StageCost fastest;
      for (const DeviceTypeId type : types) {
        const StageCost cost = stage_cost(table, stage.shape, type, samples);
        if (fastest.forward.value <= 0 || cost.forward + cost.backward < fastest.forward + fastest.backward)
          fastest = cost;
      }
      costs[{s, stage.devices()[r]}] = {&c.costs.at(s, static_cast<int>(r)), fastest};
    }
  }
  for (const InstructionId n : c.program.instructions.ids()) {
    const Instruction& i = c.program.at(n);
    const auto cost = costs.find({i.stage, i.device});
    if (!i.is_compute() || cost == costs.end()) continue;
    const auto& [usual, fastest] = cost->second;
    const Seconds now = duration(*usual, i.kind), then = duration(fastest, i.kind);
    if (now.value > 0) durations[n] = (then / now) * i.duration;
  }
  return durations;
}

bool are_comparable(const Plan& plan) {
  const Stage& first = plan.stages.front();
  return std::all_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& s) {
    return s.replicas() == first.replicas() && s.micro_batch_size == first.micro_batch_size &&
           s.shape.task == StageTask::Whole;
  });
}

/// Each kind of op takes as long in every stage as it does on the mean of the stages.
void equalize(Program& program) {
  std::map<InstructionKind, std::pair<double, std::int64_t>> sums;
  for (const Instruction& i : program.instructions)
    if (i.is_compute()) sums[i.kind].first += i.duration.value, ++sums[i.kind].second;
  for (Instruction& i : program.instructions)
    if (i.is_compute()) i.duration = {sums[i.kind].first / static_cast<double>(sums[i.kind].second)};
}

/// Collectives that are instructions, and the share of ops that contain some.
void remove_collectives(Program& program, bool sums) {
  for (Collective& c : program.collectives) {
    if (sums_gradients(c.purpose) != sums) continue;
    c.share = 0;
    for (int m = 0; m < c.members; ++m) program.instructions[c.member(m)].duration = {};
  }
  if (program.parts.empty()) return;
  for (Instruction& i : program.instructions) {
    if (!i.is_compute()) continue;
    const TimeByClass& parts = program.parts[i.stage].parts(i.kind);
    const Seconds removed = sums ? parts.data : parts.tensor + parts.context + parts.expert;
    if (parts.total().value > 0) i.duration = (1 - removed / parts.total()) * i.duration;
  }
}

}  // namespace

IdealizedRuns::IdealizedRuns(const CompiledExperiment& compiled, const Outcome& outcome, const std::string& backend)
    : compiled_(compiled),
      outcome_(outcome),
      shares_links_(backend != "ideal"),
      comparable_(are_comparable(compiled.plan)),
      fast_(fastest_durations(compiled)),
      slowness_(compiled.program.devices, 1) {
  const Program& program = compiled.program;
  IdVector<DeviceId, double> took(program.devices, 0), fastest(took);
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.at(n);
    if (!i.is_compute()) continue;
    took[i.device] += outcome.timeline.end[n] - outcome.timeline.start[n];
    fastest[i.device] += fast_[n].value;
  }
  for (const DeviceId d : took.ids())
    if (fastest[d] > 0) slowness_[d] = std::max(1.0, took[d] / fastest[d]);
}

const IdealizedRuns::Result& IdealizedRuns::result(Cost costs) {
  if (!shares_links_) costs = costs | Cost::Contention;
  const auto cached = results_.find(costs);
  if (cached != results_.end()) return cached->second;
  Program program = compiled_.program;
  Cluster cluster = cluster_of_program(compiled_);
  if (has(costs, Cost::Slowdowns)) std::erase_if(cluster.changes, [](const Change& c) { return !c.devices.empty(); });
  if (has(costs, Cost::SlowTypes)) {
    for (const InstructionId n : program.instructions.ids())
      if (program.at(n).is_compute()) program.instructions[n].duration = fast_[n];
  }
  if (has(costs, Cost::GradientSums)) remove_collectives(program, true);
  if (has(costs, Cost::GroupCollectives)) remove_collectives(program, false);
  if (has(costs, Cost::UnequalStages) && comparable_) equalize(program);
  if (has(costs, Cost::Messages)) {
    for (TransferShape& shape : program.transfer_shapes) shape.bytes = 0;
    // Collectives that are messages keep the latencies of the links.
    if (program.phases.empty())
      for (Link& link : cluster.links) link.latency = {};
  }
  const char* const backend = has(costs, Cost::Contention) ? "ideal" : "fluid";
  const Timeline timeline = get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
  const Report report = measure(program, timeline, cluster);
  return results_[costs] = {report.period, (1 - report.steady_bubble) * report.period};
}

Seconds IdealizedRuns::without(Cost costs) { return result(costs).period; }
Seconds IdealizedRuns::busiest(Cost costs) { return result(costs).busiest; }

}  // namespace stagecraft
