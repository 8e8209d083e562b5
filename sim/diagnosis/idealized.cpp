// Simulates the same program without one of its costs, such as contention or messages; what this saves is what the cost
// takes.

#include "sim/diagnosis/idealized.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "backends/backend.hpp"
#include "sim/experiment/group_changes.hpp"
#include "sim/program/group_sets.hpp"

namespace stagecraft {
namespace {

/// Zero for what the costs of a stage do not list: predictions, and scores that all ranks divide.
Seconds time_of(const OpTimes& times, InstructionKind kind) {
  const std::optional<OpKind> op = op_kind(kind);
  if (!op || *op == OpKind::Scores || *op == OpKind::ScoresGradient) return {};
  return pass_of(times, *op);
}

Seconds computation_of(const StageCost& cost) {
  const OpTimes times = computation_times(cost);
  return times.forward + times.backward;
}

/// The types of the devices that have instructions.
std::set<DeviceTypeId> types_of(const CompiledExperiment& c) {
  std::set<DeviceTypeId> types;
  for (const Stage& stage : c.plan.stages)
    for (const DeviceId d : stage.leaders) types.insert(c.cluster().devices[d].type);
  return types;
}

/// The plan where it stands, with every replica on the type of device that computes it fastest, among the types of the
/// plan. A type that cannot run some layer is not tried.
StageCosts fastest_costs(const CompiledExperiment& c, bool equal_links) {
  const CostTable& table = *c.experiment.costs;
  StageCosts fastest = equal_links ? stage_costs(c.plan, table, {.equal_links = true}) : c.costs;
  const std::set<DeviceTypeId> types = types_of(c);
  if (types.size() < 2) return fastest;
  for (const DeviceTypeId type : types) try {
      const auto same_type = [type](DeviceId) { return type; };
      const StageCosts other = stage_costs(c.plan, table, {.type_of = same_type, .equal_links = equal_links});
      for (std::size_t i = 0; i < other.values().size(); ++i)
        if (computation_of(other.values()[i]) < computation_of(fastest.values()[i]))
          fastest.values()[i] = other.values()[i];
    } catch (const InputError&) {
    }
  return fastest;
}

/// Whether prices of the plan's ops depend on slow links.
bool has_slow_links(const CompiledExperiment& c) {
  const StageCosts equal = stage_costs(c.plan, *c.experiment.costs, {.equal_links = true});
  const auto total = [](const StageCost& cost) { return cost.forward + cost.backward; };
  for (std::size_t i = 0; i < equal.values().size(); ++i)
    if (total(equal.values()[i]) != total(c.costs.values()[i])) return true;
  return false;
}

/// [device]: its stages, and which of the costs of a plan it has for each: that of its replica.
IdVector<DeviceId, std::vector<std::pair<StageId, std::size_t>>> costs_of_devices(const CompiledExperiment& c) {
  IdVector<DeviceId, std::vector<std::pair<StageId, std::size_t>>> costs(c.cluster().devices.size());
  std::size_t next = 0;
  for (const StageId s : c.plan.stages.ids())
    for (const std::vector<DeviceId>& cell : cells_of(c.plan.stages[s])) {
      for (const DeviceId d : cell) costs[d].emplace_back(s, next);
      ++next;
    }
  return costs;
}

bool are_comparable(const Plan& plan) {
  const Stage& first = plan.stages.front();
  return plan.has_whole_stages() && std::all_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& s) {
           return s.replicas() == first.replicas() && s.micro_batch_size == first.micro_batch_size;
         });
}

/// Adds to a sum and to what rounding takes from it (Neumaier, 1974), so that each number twice gives twice the sum but
/// for the rarest cases.
void add_compensated(double number, double& sum, double& lost) {
  const double next = sum + number;
  lost += std::abs(sum) >= std::abs(number) ? (sum - next) + number : (number - next) + sum;
  sum = next;
}

/// Ops with the same number take as long as they do in the mean, which is the same for one of equal replicas and for
/// all.
template <class NumberOf>
void equalize(Program& program, NumberOf&& number_of) {
  std::vector<std::tuple<double, double, std::int64_t>> sums;  // Also what rounding took, and how many they are.
  for (const Instruction& i : program.instructions)
    if (i.is_compute()) {
      const std::size_t number = number_of(i);
      if (number >= sums.size()) sums.resize(number + 1);
      auto& [sum, lost, count] = sums[number];
      add_compensated(i.duration.value, sum, lost), ++count;
    }
  for (Instruction& i : program.instructions)
    if (i.is_compute()) {
      const auto& [sum, lost, count] = sums[number_of(i)];
      i.duration = {(sum + lost) / static_cast<double>(count)};
    }
}

/// Each kind of op takes as long in every stage as it does on the mean of the stages. Micro-batches with loads of their
/// own stay different.
void equalize_stages(Program& program, const Plan& plan) {
  const bool are_alike = plan.loads.empty();
  equalize(program, [&](const Instruction& i) {
    const std::size_t micro_batch = are_alike ? 0 : i.number;
    return micro_batch * kInstructionKindCount + static_cast<std::size_t>(i.kind);
  });
}

/// Collectives that are instructions, and the share of ops that contain some.
void remove_collectives(Program& program, bool sums) {
  for (CollectiveCall& c : program.collectives) {
    if (is_offload(c) || sums_gradients(c.purpose) != sums) continue;
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

/// Forwards are late for the times of the whole program, so without some of them none is.
void remove_lateness(Program& program) {
  for (const CollectiveCall& c : program.collectives)
    if (c.purpose == Purpose::LateForward) program.instructions[c.first].duration = {};
}

void remove_copies(Program& program) {
  for (CollectiveCall& c : program.collectives)
    if (c.purpose == Purpose::Stash) c.share = 0;
}

bool offloads(const Program& program) {
  return std::any_of(program.collectives.begin(), program.collectives.end(), is_offload);
}

/// Phases of other collectives than copies.
bool has_collective_messages(const Program& program) {
  if (!offloads(program)) return !program.phases.empty();
  return std::any_of(program.collectives.begin(), program.collectives.end(),
                     [&](const CollectiveCall& c) { return !is_offload(c) && program.shape(c).phases > 0; });
}

/// Whether some op has a time of this class in it.
bool has_part(const Program& program, Seconds TimeByClass::*part) {
  return std::any_of(program.parts.begin(), program.parts.end(), [&](const StageParts& stage) {
    for (InstructionKind kind = InstructionKind::Forward; kind < InstructionKind::Send; kind = next_kind(kind))
      if ((stage.parts(kind).*part).value != 0) return true;
    return false;
  });
}

bool has_sums(const Program& program) {
  return has_part(program, &TimeByClass::data) ||
         std::any_of(program.collectives.begin(), program.collectives.end(),
                     [](const CollectiveCall& c) { return !is_offload(c) && sums_gradients(c.purpose); });
}

void remove_launches(Program& program) {
  if (program.parts.empty()) return;
  for (Instruction& i : program.instructions) {
    if (!i.is_compute()) continue;
    const TimeByClass& parts = program.parts[i.stage].parts(i.kind);
    if (parts.total().value > 0) i.duration = (1 - parts.launches / parts.total()) * i.duration;
  }
}

/// Gives a program the costs back that it has now, also where a simulation throws.
class RestoredCosts {
 public:
  explicit RestoredCosts(Program& program)
      : program_(program), collectives_(program.collectives), transfer_shapes_(program.transfer_shapes) {
    durations_.reserve(program.size());  // What is not filled takes no memory.
    for_each_timed([this](Instruction& i) { durations_.push_back(i.duration); });
  }
  ~RestoredCosts() {
    const Seconds* next = durations_.data();
    for_each_timed([&](Instruction& i) { i.duration = *next++; });
    program_.collectives = std::move(collectives_);
    program_.transfer_shapes = std::move(transfer_shapes_);
  }
  RestoredCosts(const RestoredCosts&) = delete;
  RestoredCosts& operator=(const RestoredCosts&) = delete;

 private:
  template <class Visit>
  void for_each_timed(Visit&& visit) {
    Instruction* const end = program_.instructions.data() + program_.size();
    for (Instruction* i = program_.instructions.data(); i != end; ++i)
      if (i->kind != InstructionKind::Send && i->kind != InstructionKind::Receive) visit(*i);
  }

  Program& program_;
  std::vector<Seconds> durations_;  ///< In the order of the instructions that have one.
  std::vector<CollectiveCall> collectives_;
  std::vector<TransferShape> transfer_shapes_;
};

/// The times of the ops of each of the costs of a plan, in their order.
std::vector<OpTimes> each_of(const StageCosts& costs, OpTimes (*times)(const StageCost&)) {
  std::vector<OpTimes> list;
  for (const StageCost& c : costs.values()) list.push_back(times(c));
  return list;
}

}  // namespace

IdealizedRuns::IdealizedRuns(CompiledExperiment& compiled, const Outcome& outcome, const std::string& backend)
    : compiled_(compiled),
      outcome_(outcome),
      shares_links_(backend != "ideal"),
      comparable_(are_comparable(compiled.plan)),
      has_slow_links_(has_slow_links(compiled)),
      has_types_(types_of(compiled).size() > 1),
      has_sums_(has_sums(compiled.program)),
      has_launches_(has_part(compiled.program, &TimeByClass::launches)),
      costs_of_device_(costs_of_devices(compiled)),
      slowness_(compiled.program.devices, 1),
      computation_(compiled.program.devices) {
  measure_computation();
  const bool is_certain = compiled.cluster().changes.empty() && compiled.cluster().jitter.max_fraction <= 0;
  const bool is_known = (backend == "ideal" || backend == "fluid") && is_certain && !offloads(compiled.program);
  if (is_known) results_[shares_links_ ? Cost{} : Cost::Contention] = result_of(outcome.report);
}

/// Collectives inside of ops take what the program says, also while devices are slow: the rest is computation.
void IdealizedRuns::measure_computation() {
  const Program& program = compiled_.program;
  const std::vector<OpTimes> in_ops = each_of(compiled_.costs, times_in_op);
  const std::vector<OpTimes> planned = each_of(compiled_.costs, computation_times);
  const std::vector<OpTimes> fast = each_of(fastest_costs(compiled_, false), computation_times);
  IdVector<DeviceId, Seconds> fastest(program.devices);
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.at(n);
    if (!i.is_compute()) continue;
    const Seconds took{outcome_.timeline.end[n] - outcome_.timeline.start[n]};
    const std::optional<std::size_t> cost = cost_of(i);
    const Seconds in_op = cost ? time_of(in_ops[*cost], i.kind) : Seconds{};
    if (in_op.value <= 0) {
      computation_[i.device] += took, fastest[i.device] += i.duration;
      continue;
    }
    const auto share = [&](const std::vector<OpTimes>& times) { return time_of(times[*cost], i.kind) / in_op; };
    computation_[i.device] += took - (1 - share(planned)) * i.duration;
    fastest[i.device] += share(fast) * i.duration;
  }
  for (const DeviceId d : computation_.ids()) {
    if (fastest[d].value > 0) slowness_[d] = std::max(1.0, computation_[d] / fastest[d]);
    computation_[d] = computation_[d] / static_cast<double>(program.iterations);
  }
  copy_to_counterparts(program, slowness_);
  copy_to_counterparts(program, computation_);
}

std::optional<std::size_t> IdealizedRuns::cost_of(const Instruction& op) const {
  for (const auto& [stage, cost] : costs_of_device_[op.device])
    if (stage == op.stage) return cost;
  return {};
}

void IdealizedRuns::price_again(bool fast_types, bool equal_links) {
  const std::vector<OpTimes> planned = each_of(compiled_.costs, times_in_op);
  const std::vector<OpTimes> priced =
      each_of(fast_types ? fastest_costs(compiled_, equal_links)
                         : stage_costs(compiled_.plan, *compiled_.experiment.costs, {.equal_links = equal_links}),
              times_in_op);
  for (Instruction& i : compiled_.program.instructions) {
    const std::optional<std::size_t> cost = i.is_compute() ? cost_of(i) : std::nullopt;
    if (!cost) continue;
    const Seconds now = time_of(planned[*cost], i.kind), then = time_of(priced[*cost], i.kind);
    if (now.value > 0) i.duration = (then / now) * i.duration;
  }
}

void IdealizedRuns::equalize_loads(bool replicas) {
  Program& program = compiled_.program;
  std::map<std::tuple<InstructionKind, StageId, DeviceId, int>, std::size_t> numbers;
  equalize(program, [&](const Instruction& i) {
    const std::tuple alike(i.kind, i.stage, replicas ? DeviceId{} : i.device, program.iteration_of(i));
    return numbers.try_emplace(alike, numbers.size()).first->second;
  });
}

void IdealizedRuns::remove_costs(Cost costs) {
  Program& program = compiled_.program;
  if (has(costs, Cost::SlowTypes | Cost::SlowLinks))
    price_again(has(costs, Cost::SlowTypes), has(costs, Cost::SlowLinks));
  if (has(costs, Cost::GradientSums)) remove_collectives(program, true);
  if (has(costs, Cost::GroupCollectives)) remove_collectives(program, false);
  if (has(costs, Cost::Launches)) remove_launches(program);
  if (has(costs, Cost::HostMemory)) remove_copies(program);
  remove_lateness(program);
  if (has(costs, Cost::UnequalLoads | Cost::UnequalReplicas)) equalize_loads(has(costs, Cost::UnequalReplicas));
  if (has(costs, Cost::UnequalStages) && comparable_) equalize_stages(program, compiled_.plan);
}

const IdealizedRuns::Result& IdealizedRuns::result(Cost costs) {
  if (compiled_.plan.loads.empty())
    costs = without_flag(without_flag(costs, Cost::UnequalLoads), Cost::UnequalReplicas);
  if (!offloads(compiled_.program)) costs = without_flag(costs, Cost::HostMemory);
  if (!shares_links_) costs = costs | Cost::Contention;
  if (!has_slow_links_) costs = without_flag(costs, Cost::SlowLinks);
  if (!has_types_) costs = without_flag(costs, Cost::SlowTypes);
  if (!has_sums_) costs = without_flag(costs, Cost::GradientSums);
  if (!has_launches_) costs = without_flag(costs, Cost::Launches);
  if (compiled_.cluster().changes.empty()) costs = without_flag(costs, Cost::Slowdowns);
  const auto cached = results_.find(costs);
  if (cached != results_.end()) return cached->second;
  return results_[costs] = simulate(costs);
}

IdealizedRuns::Result IdealizedRuns::simulate(Cost costs) {
  Program& program = compiled_.program;
  const RestoredCosts restored(program);
  std::optional<Cluster> changed;  // Clusters are large; only one that changes is copied.
  const bool has_free_links = has(costs, Cost::Messages) && !has_collective_messages(program);
  if (has_free_links || !compiled_.cluster().changes.empty()) changed = cluster_of_program(compiled_);
  if (has(costs, Cost::Slowdowns)) std::erase_if(changed->changes, [](const Change& c) { return !c.devices.empty(); });
  remove_costs(costs);
  if (has(costs, Cost::Messages))
    for (TransferShape& shape : program.transfer_shapes) shape.bytes = 0;
  if (has_free_links)  // Collectives that are messages keep the latencies of the links.
    for (Link& link : changed->links) link.latency = {};
  const Cluster& cluster = changed ? *changed : compiled_.cluster();
  const char* const backend = has(costs, Cost::Contention) ? "ideal" : "fluid";
  const Timeline timeline = get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
  return result_of(measure_times(program, timeline, cluster));
}

Seconds IdealizedRuns::without(Cost costs) { return result(costs).period; }
Seconds IdealizedRuns::busiest(Cost costs) { return result(costs).busiest; }

}  // namespace stagecraft
