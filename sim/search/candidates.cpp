#include "sim/search/candidates.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/plan/group.hpp"

namespace stagecraft {
namespace {

constexpr int kMostStates = 200'000, kMostSteps = 5'000'000;  // A planner takes a fraction of a second.
constexpr int kRowsOfContext = 4096;   // Fewest rows of a sequence on a device of a context group.
constexpr int kMostMicroBatches = 32;  // For each rank, or the scenario's own number; more hide little.

/// 1, 2, 3 ... up to eight, then powers of two, and `limit`.
std::vector<int> counts_up_to(int limit) {
  std::vector<int> counts;
  for (int n = 1; n <= limit; n = n < 8 ? n + 1 : 2 * n) counts.push_back(n);
  if (counts.back() != limit) counts.push_back(limit);
  return counts;
}

/// The planner searches where to cut, and how often. `explicit` searches for nothing, `layerpipe` makes no stages, and
/// `brute` finds what others find.
bool is_tried(const PlannerDef& def) {
  return def.name != "balanced" && def.name != "explicit" && def.name != "layout" && def.name != "layerpipe" &&
         def.name != "brute";
}

/// Limits the search of a planner that has such an option.
void limit_effort(PlanSpec& spec) {
  if (spec.planner->fields->find("states")) spec.effort = kMostStates;
  if (spec.planner->fields->find("steps")) spec.effort = kMostSteps;
}

/// What each device does and keeps whatever the order of work: its computations, weights, and one micro-batch.
struct Load {
  std::vector<Seconds> busy;
  std::vector<Bytes> in_use;
};

Load load_of(const PlannedExperiment& p) {
  const std::size_t devices = p.cluster().devices.size();
  Load load{std::vector<Seconds>(devices), std::vector<Bytes>(devices)};
  // One recomputing stage at a time has all of its stash, and only one of two copies may have a micro-batch.
  std::vector<Bytes> largest(load.in_use);
  for (const StageId s : p.plan.stages.ids()) {
    const Stage& stage = p.plan.stage(s);
    for (std::size_t r = 0; r < stage.devices().size(); ++r) {
      const StageCost& c = p.costs.at(s, static_cast<int>(r));
      const bool in_turn = stage.shape.recomputes_all() || stage.twin.valid();
      const DeviceId d = stage.devices()[r];
      const Seconds backward = std::min(c.backward, c.input_gradient + c.weight_gradient);
      const Seconds each = c.forward + backward + (stage.shape.recomputes_all() ? c.recompute : Seconds{0});
      load.busy[d.value] += p.plan.micro_batches_per_replica(s) * each + c.update;
      const StageMemory memory = stage_memory(c.memory, in_turn ? 0 : 1);
      load.in_use[d.value] += memory.resident() + memory.stash;
      if (in_turn) largest[d.value] = std::max(largest[d.value], c.memory.whole_stash());
    }
  }
  for (std::size_t d = 0; d < largest.size(); ++d) load.in_use[d] += largest[d];
  return load;
}

/// A placement, and for both directions the schedule that divides the micro-batches.
using PlacementChoice = std::pair<Placement, const ScheduleDef*>;

class CandidateMaker {
 public:
  CandidateMaker(const PlannedExperiment& configured, const CandidateOptions& asked,
                 const std::function<void(const std::string&)>& progress)
      : configured_(configured),
        asked_(asked),
        progress_(progress),
        samples_(configured.plan.mini_batch),
        layers_(static_cast<int>(configured.model().layers.size())),
        recomputations_(recomputations(configured.model())),
        linear_(ordered_by(get_from(schedules::catalog(), "schedule", "1f1b"))) {
    for (const int start : {1, configured.plan.stages.front().micro_batch_size}) {
      for (std::int64_t size = start; size <= samples_; size *= 2) sizes_.insert(static_cast<int>(size));
      for (int size = start; size % 2 == 0; size /= 2) sizes_.insert(size / 2);
    }
    std::erase_if(sizes_, [&](int size) { return samples_ % size != 0; });
    rank_devices();
    for (const ScheduleDef* def : asked.schedules) {
      const Placement placement = placement_of(*def);
      placements_.emplace_back(placement, placement == Placement::Bidirectional ? def : nullptr);
    }
    std::sort(placements_.begin(), placements_.end(), [](const PlacementChoice& a, const PlacementChoice& b) {
      const auto name = [](const ScheduleDef* def) { return def ? def->name : std::string_view(); };
      return std::pair(a.first, name(a.second)) < std::pair(b.first, name(b.second));
    });
    placements_.erase(std::unique(placements_.begin(), placements_.end()), placements_.end());
  }

  Candidates make() {
    if (configured_.experiment.rules) {
      groups();
    } else {
      even_cuts();
      for (const PlannerDef* def : planners::catalog())
        if (is_tried(*def)) plans_of(*def);
    }
    std::stable_sort(made_.list.begin(), made_.list.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bound.period < b.bound.period; });
    return std::move(made_);
  }

 private:
  Experiment ordered_by(const ScheduleDef& def) const {
    return with_order(configured_.experiment, schedule_spec(def), weights_spec("auto"));
  }

  void rank_devices() {
    const Cluster& cluster = configured_.cluster();
    for (std::size_t d = 0; d < cluster.devices.size(); ++d) fastest_.emplace_back(static_cast<std::int64_t>(d));
    std::stable_sort(fastest_.begin(), fastest_.end(),
                     [&](DeviceId a, DeviceId b) { return cluster.type_of(a).peak > cluster.type_of(b).peak; });
  }

  void even_cuts() {
    const int devices = static_cast<int>(fastest_.size());
    const PlanSpec defaults =
        default_plan_spec(get_from(planners::catalog(), "planner", "balanced"), configured_.cluster());
    for (const int ranks : counts_up_to(devices))
      for (const int replicas : counts_up_to(devices / ranks))
        for (const int size : sizes_)
          for (const PlacementChoice& where : placements_)
            for (const Recomputation recompute : recomputations_) {
              const bool once = where.first == Placement::Linear || where.first == Placement::Bidirectional;
              const int stages = once ? ranks : 2 * ranks;
              if (size < replicas || stages > layers_) continue;
              if (configured_.experiment.plan.per_replica && size % replicas != 0) continue;
              if (samples_ / size > std::max(configured_.experiment.run.micro_batches, kMostMicroBatches * ranks))
                continue;
              progress_(fmt::format("{}, {}, micro-batches of {}", pluralize(stages, "stage"),
                                    pluralize(replicas, "replica"), size));
              PlanSpec spec = defaults;
              spec.stages = stages;
              spec.replicas = replicas;
              spec.devices = fastest(ranks * replicas);
              add(std::move(spec), where, size, recompute);
            }
  }

  /// Divisions of the whole cluster: tensor inside a node, context for long sequences, experts, stages, and replicas
  /// for the rest, which divide the states of the optimizer.
  void groups() {
    const NodeShape& node = configured_.experiment.rules->node;
    const ModelGraph& model = configured_.model();
    int sequence = 0, experts = 1;
    for (const Layer& layer : model.layers)
      for (const Operation& op : layer.operations) {
        if (op.kind == OperationKind::Attention) sequence = std::max(sequence, op.rows);
        if (op.kind == OperationKind::GroupedLinear) experts = std::max(experts, op.experts);
      }
    const int devices = static_cast<int>(fastest_.size());
    const int most_context = std::max(1, sequence / kRowsOfContext);
    for (const int tensor : powers_of_two(node.devices))
      for (const int context : powers_of_two(most_context))
        for (const int expert : powers_of_two(experts))
          for (const int ranks : divisors(devices / (tensor * context))) {
            Degrees d{.replicas = devices / (tensor * context * ranks),
                      .context = context,
                      .tensor = tensor,
                      .expert = expert};
            d.sequence = tensor > 1;
            if (d.replicas == 0 || d.devices() * ranks != devices || d.devices() % expert != 0) continue;
            if (experts > 1 && expert == 1 && tensor > 1) continue;  // Experts are divided before products are.
            stages_of(d, ranks);
          }
  }

  void stages_of(const Degrees& degrees, int ranks) {
    const PlanSpec defaults =
        default_plan_spec(get_from(planners::catalog(), "planner", "balanced"), configured_.cluster());
    for (const PlacementChoice& where : placements_) {
      const bool once = where.first == Placement::Linear || where.first == Placement::Bidirectional;
      const int stages = once ? ranks : 2 * ranks;
      if (stages > layers_ || (ranks == 1 && !once)) continue;
      for (const int each : {1, 2, 4, 8}) {
        const std::int64_t size = std::int64_t{each} * degrees.replicas;
        if (size > samples_ || samples_ % size != 0) continue;
        for (const Recomputation recompute : {Recomputation::None, Recomputation::Selective, Recomputation::Layers}) {
          progress_(fmt::format("tensor {}, {}, {}, micro-batches of {}", degrees.tensor, pluralize(stages, "stage"),
                                pluralize(degrees.replicas, "replica"), each));
          for (const StateSharding sharding : shardings_of(degrees, ranks)) {
            PlanSpec spec = defaults;
            spec.stages = stages;
            spec.group = degrees;
            spec.replicas = degrees.replicas;
            spec.sharding = sharding;
            add(std::move(spec), where, static_cast<int>(size), recompute);
          }
        }
      }
    }
  }

  /// With a pipeline, weights that stay gathered save nothing over divided states of the optimizer, and gradients that
  /// are summed after each backward cost more.
  static std::vector<StateSharding> shardings_of(const Degrees& degrees, int ranks) {
    if (degrees.replicas * degrees.context == 1) return {StateSharding::None};
    if (ranks > 1) return {StateSharding::Optimizer};
    return {StateSharding::Optimizer, StateSharding::Gradients, StateSharding::Weights};
  }

  static std::vector<int> powers_of_two(int limit) {
    std::vector<int> powers;
    for (int n = 1; n <= limit; n *= 2) powers.push_back(n);
    return powers;
  }
  static std::vector<int> divisors(int number) {
    std::vector<int> list;
    for (int n = 1; n <= number; ++n)
      if (number % n == 0) list.push_back(n);
    return list;
  }

  void plans_of(const PlannerDef& def) {
    const PlacementChoice linear{Placement::Linear, nullptr};
    if (std::find(placements_.begin(), placements_.end(), linear) == placements_.end() ||
        !def.fields->find("micro_batch_size"))
      return;
    const int max_micro_batches =
        std::max(configured_.experiment.run.micro_batches, kMostMicroBatches * static_cast<int>(fastest_.size()));
    PlanSpec spec = default_plan_spec(def, configured_.cluster());
    limit_effort(spec);
    for (const int size : sizes_)
      for (const Recomputation recompute : recomputations_) {
        if (recompute != Recomputation::None && !def.fields->find("recompute")) continue;
        if (samples_ / size > max_micro_batches) continue;
        progress_(fmt::format("{}, micro-batches of {}", def.name, size));
        add(spec, linear, size, recompute);
      }
  }

  std::vector<DeviceId> fastest(int count) const {
    std::vector<DeviceId> chosen(fastest_.begin(), fastest_.begin() + count);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  void add(PlanSpec spec, const PlacementChoice& where, int size, Recomputation recompute) {
    ++made_.plans;
    Candidate c;
    c.placement = where.first;
    c.both_ways = where.second;
    c.plan = std::move(spec);
    c.plan.micro_batch_size = size;
    c.plan.per_replica = configured_.experiment.plan.per_replica;
    // A planner that chooses for itself still does where nothing is recomputed.
    if (recompute != Recomputation::None) c.plan.recompute = recompute;
    if (c.placement != Placement::Linear && !c.both_ways) c.plan.placement = c.placement;
    c.bound.planner = c.plan.planner->name;
    c.bound.micro_batch_size = size;
    c.bound.micro_batches = samples_ / size;
    c.bound.placement = to_text(c.placement);
    try {
      if (complete(c)) made_.list.push_back(std::move(c));
    } catch (const Infeasible&) {
    } catch (const InputError&) {  // The planner wants other devices, or more micro-batches than can be counted.
    }
  }

  /// False when not even the weights fit.
  bool complete(Candidate& c) {
    Experiment e = c.both_ways ? ordered_by(*c.both_ways) : linear_;
    e.plan = c.plan;
    e.run.micro_batches = c.bound.micro_batches;
    const PlannedExperiment p = plan_experiment(e);
    if (instructions_of(p.plan, asked_.iterations, true) > asked_.most_instructions) {
      made_.cut_short = true;
      return false;
    }
    std::set<DeviceId> used;
    for (const Stage& stage : p.plan.stages) {
      used.insert(stage.dense.devices.begin(), stage.dense.devices.end());
      c.bound.replicas = std::max(c.bound.replicas, static_cast<int>(stage.devices().size()));
      if (stage.shape.recomputes_attention() && c.bound.recompute == "none") c.bound.recompute = "selective";
      if (stage.shape.recomputes_all()) c.bound.recompute = "full";
      if (stage.shape.recomputes_layers()) c.bound.recompute = "layers";
    }
    c.bound.group = group_words(c.plan);
    c.bound.group_devices = c.plan.group.group();
    c.bound.devices = static_cast<int>(used.size());
    c.bound.stages = p.plan.different_stages();
    const Load load = load_of(p);
    c.bound.period = *std::max_element(load.busy.begin(), load.busy.end());
    c.bound.memory = *std::max_element(load.in_use.begin(), load.in_use.end());
    for (std::size_t d = 0; d < load.in_use.size(); ++d) {
      const Bytes there = p.cluster().type_of(DeviceId{d}).usable_memory();
      if (there.value <= 0 || load.in_use[d] <= there) continue;
      if (made_.too_large++ == 0 || c.bound.memory < made_.least_memory) made_.least_memory = c.bound.memory;
      return false;
    }
    return true;
  }

  const PlannedExperiment& configured_;
  const CandidateOptions& asked_;
  const std::function<void(const std::string&)>& progress_;
  Candidates made_;
  int samples_, layers_;
  std::vector<Recomputation> recomputations_;
  std::set<int> sizes_;  ///< Samples in a micro-batch: powers of two, and those times and divided into the scenario's.
  std::vector<DeviceId> fastest_;  ///< Highest peak first.
  std::vector<PlacementChoice> placements_;
  Experiment linear_;  ///< The experiment with 1F1B, whose plans serve every schedule without a placement of its own.
};

}  // namespace

Placement placement_of(const ScheduleDef& def) {
  return def.placement == Placement::Any ? Placement::Linear : def.placement;
}

Candidates candidate_plans(const PlannedExperiment& configured, const CandidateOptions& asked,
                           const std::function<void(const std::string&)>& progress) {
  return CandidateMaker(configured, asked, progress).make();
}

}  // namespace stagecraft
