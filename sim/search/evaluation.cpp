// Makes the plan of a variant and simulates it with an order of work: the tasks of a search.

#include "sim/search/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "sim/cluster/memory_reserve.hpp"
#include "sim/config/override.hpp"
#include "sim/experiment/fold_replicas.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/experiment/order_evaluation.hpp"
#include "sim/experiment/order_experiment.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/plan/plan_words.hpp"
#include "sim/planners/shared/group.hpp"
#include "sim/program/least_memory.hpp"
#include "sim/program/offload.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/slices.hpp"
#include "sim/search/replay.hpp"

namespace stagecraft {

namespace {

constexpr double kSmallPlan = 2e5;           // Instructions of a simulation whose plan is cheap to keep.
constexpr std::size_t kMostCosts = 400'000;  // Large plans with more take more than some hundred megabytes.

/// The synthesised schedule goes with any placement, and has options that say which.
bool is_placed(const PlanVariant& v, const SchedulingPolicy& policy) {
  return policy.schedule->name == "synthesised" && v.placement != Placement::Linear;
}

/// The options of the scenario's own schedule, but for where the stages lie; none for another schedule.
std::vector<config::Member> own_options(const ScheduleDef& def, const ScheduleSpec& configured) {
  return &def == configured.def ? options_without_placement(configured) : std::vector<config::Member>();
}

/// A weights policy with the options of the scenario: all of them for the scenario's own, `fidelity` for another.
WeightsSpec weights_with_options(const std::string& policy, const WeightsSpec& configured) {
  if (!configured.automatic && policy == configured.name()) return configured;
  const config::Value& fidelity = configured.options->at("fidelity");
  return weights_spec(policy, fidelity.origin.empty() ? fidelity.text : "", fidelity.where);
}

void set_variant(const PlanVariant& v, Experiment& e) {
  e.plan = v.plan;
  e.run.micro_batches = v.micro_batches;
  if (v.packs.packs) e.run.packs = v.packs.packs;
  if (v.buckets) e.run.buckets = v.large_buckets ? BucketRule{.gradients = kLargeBuckets} : e.software().buckets;
}

/// The weights as a setting, with the options that are not at their defaults.
std::string weights_set(const std::string& policy, const WeightsSpec& weights) {
  std::string options;
  for (const config::Member& m : weights.options->members)
    if (m.key != "policy" && m.value.origin.empty())
      options += fmt::format(", {}: {}", m.key, config::to_set_text(m.value));
  return options.empty() ? "weights=" + policy : fmt::format("weights={{policy: {}{}}}", policy, options);
}

/// Rounded down, so that what fits leaves the margin free.
std::string limit_text(Bytes memory) {
  constexpr double kMebibyte = 1 << 20, kFew = 1000;
  return memory.value < kFew * kMebibyte ? fmt::format("{:.0f} B", std::floor(memory.value))
                                         : fmt::format("{:.0f} MiB", std::floor(memory.value / kMebibyte));
}

/// The options of a policy's schedule that are not at their defaults. `memory`: for orders that leave the margin free.
std::vector<config::Member> schedule_options(const PlanVariant& v, const SchedulingPolicy& policy,
                                             const ScheduleSpec& configured, Bytes memory) {
  std::vector<config::Member> options = own_options(*policy.schedule, configured);
  const auto add = [&](const char* key, std::string value) {
    options.push_back({key, {}, config::Value::scalar(std::move(value), {})});
  };
  if (policy.leaves_margin) {
    std::erase_if(options, [](const config::Member& m) { return m.key == "memory"; });
    add("memory", limit_text(memory));
  }
  if (!is_placed(v, policy)) return options;
  add("placement", std::string(to_text(v.placement)));
  add("chunks", fmt::format("{}", std::max(2, v.chunks)));
  return options;
}

/// The batch stays last.
void add_plan_words(const std::string& words, Choice& c) {
  c.plan_words.insert(c.plan_words.rfind(" · "), " · " + words);
}

/// `plan.offload` as far as anything goes to host memory: no activations do where the plan fits without.
std::optional<Offload> offload_in_effect(const CompiledExperiment& c) {
  std::optional<Offload> offload = c.experiment.plan.offload;
  if (!offload || copies_stashes(c.program)) return offload;
  offload->selective = false, offload->activations = 0;
  return offload->optimizer > 0 ? offload : std::nullopt;
}

}  // namespace

void describe_choice(const PlannedExperiment& p, const PlanVariant& v, const NetworkParts& parts, Choice& c) {
  const std::vector<DeviceId> used = devices_of(p.plan);
  for (const Stage& stage : p.plan.stages) {
    c.replicas = std::max(c.replicas, static_cast<int>(stage.leaders.size()));
    if (recomputes_by_modules(stage.shape.recomputation) &&
        (c.recompute == "none" || stage.shape.recomputes_operations()))
      c.recompute = to_text(stage.shape.recomputation);
    if (stage.shape.recomputes_all()) c.recompute = "full";
    if (stage.shape.recomputes_layers()) c.recompute = "layers";
    if (const int first = stage.shape.recomputed_layers; first > 0) c.recompute = "first " + pluralize(first, "layer");
    if (stage.shape.recomputes_half()) c.recompute = "half";
  }
  c.device_types = parts.device_text(used);
  for (const DeviceId d : used) ++c.devices_of_type[p.cluster().type_of(d).name];
  c.planner = v.plan.planner->name;
  c.micro_batch_size = v.plan.micro_batch_size;
  c.micro_batches = v.micro_batches;
  c.placement = to_text(v.placement);
  c.group = group_words(v.plan);
  c.plan_words = plan_words(p.plan);
  if (!v.packs.words.empty()) add_plan_words(v.packs.words, c);
  if (v.buckets)
    add_plan_words(v.large_buckets ? "gradient buckets of " + to_text(kLargeBuckets) : "gradient buckets", c);
  c.group_devices = v.plan.group.group();
  c.devices = static_cast<int>(used.size());
  c.stages = p.plan.different_stages();
}

namespace {

/// How many times fewer instructions a simulation has than the plan.
int copies_of(const PlannedExperiment& planned, const LinkCollectives* idle) {
  const std::optional<PlannedExperiment> folded = fold_replicas(planned, idle);
  return folded ? folded->plan.copies : 1;
}

}  // namespace

CombinationRunner::CombinationRunner(const Experiment& configured, const std::vector<SchedulingPolicy>& policies,
                                     std::string backend, int iterations, double margin,
                                     const SearchObjective& objective, const FrameworkLimits& limits)
    : configured_(configured),
      backend_(std::move(backend)),
      iterations_(iterations),
      margin_(margin),
      objective_(objective),
      limits_(limits),
      links_(configured.cluster),
      idle_(backend_ == "ideal" ? &links_ : nullptr),
      parts_(*configured.cluster),
      overlap_sets_(overlap_sets(limits.switches())) {
  std::vector<Experiment> by_overlap;
  for (const std::vector<Overlap>& features : overlap_sets_) {
    by_overlap.push_back(variant_of(with_overlap(configured_, features)));
    by_overlap.back().run.lowering.iterations = iterations_;
  }
  for (const SchedulingPolicy& policy : policies) {
    if (can_run(policy)) continue;
    try {
      const ScheduleSpec schedule =
          policy.order          ? schedule_of(*policy.order)
          : policy.own_schedule ? policy.own_schedule->spec  // It gives an order when there is a plan.
                                : schedule_spec(*policy.schedule, own_options(*policy.schedule, configured_.schedule));
      if (configured_.run.packs && read_slices(*schedule.options).cut)
        throw InputError("a search does not cut packs into slices", "stagecraft sweep over run.schedule.slices");
      const WeightsSpec weights = weights_with_options(policy.weights, configured_.weights);
      OrderedExperiment ordered{policy, {}};
      for (const Experiment& e : by_overlap) ordered.by_overlap.push_back(with_order(e, schedule, weights));
      ordered_.push_back(std::move(ordered));
    } catch (const InputError& problem) {
      refused_.emplace_back(policy.name(), problem.problems().front());
    }
  }
}

const CombinationRunner::OrderedExperiment* CombinationRunner::find(const SchedulingPolicy& policy) const {
  const auto at = std::find_if(ordered_.begin(), ordered_.end(), [&](const OrderedExperiment& entry) {
    return entry.policy.name() == policy.name() && entry.policy.weights == policy.weights;
  });
  return at == ordered_.end() ? nullptr : &*at;
}

Experiment CombinationRunner::experiment_of(const Combination& c, std::size_t overlap_set) const {
  const PlanVariant& v = c.candidate->variant;
  Experiment e = find(c.policy)->by_overlap[overlap_set];
  if (is_placed(v, c.policy) || c.policy.leaves_margin)
    e.schedule =
        schedule_spec(*c.policy.schedule, schedule_options(v, c.policy, configured_.schedule, memory_with_margin()));
  set_variant(v, e);
  return e;
}

std::vector<std::string> CombinationRunner::sets_of(const Combination& c) const {
  const PlanVariant& v = c.candidate->variant;
  std::string options;
  for (const config::Member& m : c.policy.order
                                     ? std::vector<config::Member>()
                                     : schedule_options(v, c.policy, configured_.schedule, memory_with_margin()))
    options += fmt::format(", {}: {}", m.key, config::to_set_text(m.value));
  const std::string name = c.policy.order ? "{csv: " + c.policy.order->file + "}" : c.policy.name();
  std::vector<std::string> sets{"plan=" + to_text(v.plan, *configured_.cluster),
                                options.empty() ? fmt::format("run.schedule={}", name)
                                                : fmt::format("run.schedule={{name: {}{}}}", name, options)};
  if (!v.packs.packs) sets.push_back(fmt::format("run.micro_batches={}", v.micro_batches));
  sets.insert(sets.end(), v.packs.sets.begin(), v.packs.sets.end());
  sets.push_back(weights_set(c.policy.weights, find(c.policy)->by_overlap.front().weights));
  if (v.buckets) sets.push_back("run.gradient_buckets=" + (v.large_buckets ? to_text(kLargeBuckets) : "software"));
  return sets;
}

std::shared_ptr<const Candidate> CombinationRunner::candidate(const PlanVariant& v, double max_instructions,
                                                              bool& too_large_to_simulate) const {
  const auto at = std::find_if(ordered_.begin(), ordered_.end(), [&](const auto& entry) {
    const ScheduleDef& def = *entry.policy.schedule;
    if (entry.policy.order && !v.both_ways) return placement_of(entry.policy.shape.placed_as()) == v.placement;
    return v.both_ways ? &def == v.both_ways : def.name != "synthesised" && placement_of(def) == v.placement;
  });
  auto c = std::make_shared<Candidate>();
  c->variant = v;
  Experiment e = (at != ordered_.end() ? *at : ordered_.front()).by_overlap.front();
  set_variant(v, e);
  try {
    auto planned = std::make_shared<const PlannedExperiment>(plan_experiment(e));
    const double instructions = instructions_of(planned->plan, iterations_, true);
    too_large_to_simulate =
        instructions > max_instructions && instructions > max_instructions * copies_of(*planned, idle_);
    if (too_large_to_simulate) return nullptr;
    describe_choice(*planned, v, parts_, c->properties);
    c->flushes = e.schedule.flushes();
    c->bound = plan_bound(*planned, links_);
    c->properties.period = std::max(c->bound.period, v.bound);
    c->properties.memory = c->bound.memory;
    c->amount = objective_.of_devices(devices_of(planned->plan));
    for (const auto& [type, work] : c->bound.work_of_type) c->amount.fixed += objective_.work_price(type) * work.value;
    c->properties.amount = least_amount(*c, c->properties.period);
    if (instructions < kSmallPlan) {
      c->planned = std::move(planned);
    } else {
      c->large_plan = planned;
      keep_large(std::move(planned));
    }
    return c;
  } catch (const Infeasible&) {
  } catch (const InputError&) {  // The planner wants other devices, or more micro-batches than can be counted.
  }
  return nullptr;
}

void CombinationRunner::keep_large(std::shared_ptr<const PlannedExperiment> plan) const {
  const std::lock_guard lock(mutex_);
  costs_ += plan->costs.values().size();
  large_plans_.push_back(std::move(plan));
  for (; costs_ > kMostCosts; large_plans_.pop_front()) costs_ -= large_plans_.front()->costs.values().size();
}

Bytes CombinationRunner::memory_with_margin() const { return (1 - margin_) * equal_capacity(*configured_.cluster); }

double CombinationRunner::least_amount(const Candidate& c, Seconds period) const {
  return std::max(c.variant.amount, objective_.amount(c.amount, period, c.bound.work));
}

namespace {

/// The plan of the candidate for an order.
PlannedExperiment planned_for(const Candidate& candidate, const Experiment& e) {
  const std::shared_ptr<const PlannedExperiment> large = candidate.large_plan.lock();
  const PlannedExperiment* const cached = candidate.planned ? candidate.planned.get() : large.get();
  return cached ? plan_again(*cached, e) : plan_experiment(e);
}

}  // namespace

void measure_choice(const Outcome& outcome, const CompiledExperiment& p, Choice& c) {
  const Report& report = outcome.report;
  c.weights = p.experiment.weights.name();
  if (const std::optional<Offload> offload = offload_in_effect(p)) add_plan_words("offload " + short_text(*offload), c);
  measure_row(c, p, outcome);
  c.energy = report.energy / p.program.iterations;
  for (const DeviceReport& d : report.devices) {
    if (d.memory.capacity.value > 0) c.filled = std::max(c.filled, d.memory.total / d.memory.capacity);
    c.work = std::max(c.work, (1 - report.steady_bubble) * report.period);
  }
}

void CombinationRunner::set_amount(const Combination& combination, Choice& c) const {
  c.amount = objective_.amount(combination.candidate->amount, c);
  c.is_tight = c.filled > 1 - margin_;
}

std::optional<PlannedExperiment> CombinationRunner::accepted(const Combination& combination, Trial& trial) const {
  for (std::size_t set = 0; set < overlap_sets_.size(); ++set) {
    PlannedExperiment planned = planned_for(*combination.candidate, experiment_of(combination, set));
    const std::string refusal = limits_.refusal_of(planned);
    if (refusal.empty()) {
      trial.choice.overlap = overlap_setting(configured_, overlap_sets_[set], planned.plan);
      if (const auto& schedule = combination.policy.own_schedule)
        planned.experiment =
            with_order(planned.experiment, schedule_of(schedule->order_on(planned)), planned.experiment.weights);
      return planned;
    }
    if (trial.why.empty()) trial.why = refusal;
  }
  return {};
}

namespace {

/// Infeasible where weights and stashes alone exceed a device, which compile() would find after it wrote a program.
void check_stashes(const PlannedExperiment& p, const Schedule& order) {
  constexpr double kRounding = 1 + 1e-9;
  if (p.experiment.plan.offload || !p.cluster().changes.empty()) return;  // compile() has other checks before memory.
  const IdVector<DeviceId, Bytes> needs = least_memory(order, p.plan, p.costs, p.experiment.run.lowering.iterations);
  for (const DeviceId d : needs.ids()) {
    const Bytes capacity = p.cluster().type_of(d).usable_memory();
    if (capacity.value > 0 && needs[d] > kRounding * capacity)
      throw Infeasible("memory", fmt::format("{} needs more than {}, but has {}", p.cluster().devices[d].name,
                                             to_text(needs[d]), to_text(capacity)));
  }
}

}  // namespace

Trial CombinationRunner::run(const Combination& combination) const {
  Trial trial{TrialResult::Ran, {}, combination.candidate->properties};
  trial.choice.schedule = combination.policy.name();
  try {
    std::optional<PlannedExperiment> planned = accepted(combination, trial);
    if (!planned) {
      trial.result = TrialResult::Refused;
      return trial;
    }
    PlannedExperiment folded = fold_replicas(*planned, idle_).value_or(*std::move(planned));
    const Schedule order = order_experiment(folded);
    check_stashes(folded, order);
    CompiledExperiment p = compile(std::move(folded), &order);
    if (p.experiment.plan.offload && !configured_.plan.offload && !offload_in_effect(p)) {
      trial.result = TrialResult::Refused;
      trial.why = "the plan fits without host memory, and is in the list without it";
      return trial;
    }
    measure_choice(run_to_compare(p, backend_), p, trial.choice);
    set_amount(combination, trial.choice);
    if (combination.policy.effort == 2) trial.choice.order = std::make_shared<const Schedule>(std::move(p.schedule));
  } catch (const Infeasible& e) {
    trial.result = e.problem().code == "memory" ? TrialResult::Unfit : TrialResult::Refused;
    trial.why = full_message(e.problem());
  } catch (const InputError& e) {
    trial.result = TrialResult::Refused;
    trial.why = e.problems().front().message;
  }
  return trial;
}

void CombinationRunner::replay(const Combination& combination, Trial& trial) const {
  const std::optional<PlannedExperiment> planned = accepted(combination, trial);
  trial.choice.replayed = contended_result(compile_folded(*planned, nullptr, trial.choice.order.get()));
  if (!trial.choice.replayed->ran()) trial.result = TrialResult::Unfit;
  set_amount(combination, trial.choice);
}

}  // namespace stagecraft
