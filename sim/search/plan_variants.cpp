// Lists the plans that a search tries, before any is made: planners, stages, placement, replicas, groups, micro-batch
// sizes, recomputation and devices, each with lower bounds.

#include "sim/search/plan_variants.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/core/stop_point.hpp"
#include "sim/planners/shared/bounds.hpp"
#include "sim/search/device_orders.hpp"
#include "sim/search/group_divisions.hpp"
#include "sim/search/policies.hpp"
#include "sim/search/work_bound.hpp"

namespace stagecraft {
namespace {

constexpr int kMostStates = 200'000, kMostSteps = 5'000'000;  // A planner takes a fraction of a second.
constexpr int kMostMicroBatches = 32;           // For each rank, or the scenario's own number; more hide little.
constexpr int kEveryCount = 32;                 // On at most 32 devices every number of stages and replicas is tried.
constexpr int kMostChunks = 4;                  // Stages on a rank; more have more messages than they save.
constexpr int kMostChunksOfGroups = 8;          // With groups, whose ranks have more layers.
constexpr int kSamples[] = {1, 2, 3, 4, 6, 8};  // Samples of a replica in a micro-batch, with groups.

/// Numbers of ranks or replicas: all up to kEveryCount, then those that divide the devices, powers of two, and `limit`.
std::vector<int> counts_up_to(int limit, int devices) {
  std::vector<int> counts;
  for (int n = 1; n <= limit; ++n)
    if (n == limit || devices <= kEveryCount || n <= 8 || (devices % n == 0) || (n & (n - 1)) == 0) counts.push_back(n);
  return counts;
}

/// The planner searches where to cut, and how often. `explicit` searches for nothing, `layerpipe` makes no stages, and
/// `brute` finds what others find.
bool is_tried(const PlannerDef& def) {
  return def.name != "balanced" && def.name != "explicit" && def.name != "layout" && def.name != "layerpipe" &&
         def.name != "brute";
}

/// Limits the search of a planner that has such an option, unless the scenario says how long it may be.
void limit_effort(PlanSpec& spec) {
  for (const auto& [field, limit] : {std::pair("states", kMostStates), std::pair("steps", kMostSteps)})
    if (spec.planner->fields->find(field) && spec.source->at(field).origin == "default") spec.effort = limit;
}

/// A placement, and for both directions the schedule that divides the micro-batches.
struct PlacementChoice {
  Placement placement;
  const ScheduleDef* both_ways = nullptr;

  std::pair<Placement, std::string_view> key() const {
    return {placement, both_ways ? both_ways->name : std::string_view()};
  }
};

std::vector<PlacementChoice> placements_of(const std::vector<const ScheduleDef*>& schedules) {
  std::vector<PlacementChoice> list;
  for (const ScheduleDef* def : schedules) {
    const Placement placement = placement_of(*def);
    list.push_back({placement, placement == Placement::Bidirectional ? def : nullptr});
  }
  std::sort(list.begin(), list.end(),
            [](const PlacementChoice& a, const PlacementChoice& b) { return a.key() < b.key(); });
  list.erase(std::unique(list.begin(), list.end(),
                         [](const PlacementChoice& a, const PlacementChoice& b) { return a.key() == b.key(); }),
             list.end());
  return list;
}

class VariantMaker {
 public:
  VariantMaker(const PlannedExperiment& configured, const std::vector<const ScheduleDef*>& schedules,
               const NetworkParts& parts, const SearchObjective& objective, const FrameworkLimits& limits,
               const std::vector<std::string>& pack_fields)
      : configured_(configured),
        parts_(parts),
        objective_(objective),
        limits_(limits),
        samples_(configured.plan.mini_batch),
        layers_(static_cast<int>(configured.model().layers.size())),
        devices_(static_cast<int>(configured.cluster().devices.size())),
        placements_(placements_of(schedules)),
        balanced_(kept_options(get_from(planners::catalog(), "planner", "balanced"))),
        names_dispatcher_(names_dispatcher(configured.experiment.plan)),
        orders_(configured.cluster()),
        work_(configured),
        packs_(configured, pack_fields) {
    for (const DeviceId d : configured.cluster().devices.ids()) all_devices_.push_back(d);
  }

  PlanVariants make() {
    if (configured_.experiment.software().prices) {
      groups();
    } else {
      chains();
      for (const PlannerDef* def : planners::catalog())
        if (is_tried(*def)) plans_of(*def);
      if (orders_.skips_some()) made_.left_out.insert("other orders and subsets of the devices");
    }
    made_.left_out.merge(packs_.untried());
    std::stable_sort(made_.list.begin(), made_.list.end(),
                     [](const PlanVariant& a, const PlanVariant& b) { return a.amount < b.amount; });
    return std::move(made_);
  }

 private:
  /// The options of the scenario's plan that the search does not vary, for a planner.
  PlanSpec kept_options(const PlannerDef& def) const {
    PlanSpec spec = plan_spec_for(
        def, configured_.experiment.plan, 1, configured_.cluster(),
        {"stages", "replicas", "placement", "micro_batch_size", "recompute", "recompute_layers", "devices"});
    spec.stages.reset();
    spec.group = {.expert_tensor = spec.group.expert_tensor};
    spec.sharding = StateSharding::None;  // `within` and `reshard` stay for the states that have them.
    return spec;
  }

  /// These kinds, and the scenario's own.
  std::vector<Recomputation> with_own_kind(std::vector<Recomputation> kinds) const {
    const std::optional<Recomputation>& written = configured_.experiment.plan.recompute;
    if (written && std::find(kinds.begin(), kinds.end(), *written) == kinds.end()) kinds.push_back(*written);
    return kinds;
  }

  /// Numbers of stages on a rank.
  std::vector<int> chunks_in(const PlacementChoice& where, int ranks) {
    if (where.placement == Placement::Linear || where.placement == Placement::Bidirectional) return {1};
    // On one rank chunks save memory where a stage recomputes all, and a stage can exchange gradients and weights while
    // another computes. Megatron-LM's interleaved schedule needs two ranks (megatron/training's validate_args).
    const SoftwareStack& software = configured_.experiment.software();
    if (ranks == 1 && !software.prices) {
      if (layers_ > 2) made_.left_out.insert("more than 2 stages on a single rank");
      return {2};
    }
    if (ranks == 1 && is_megatron(software)) {
      made_.left_out.insert("several stages on a single rank, which Megatron-LM refuses");
      return {};
    }
    const int max_chunks = software.prices ? kMostChunksOfGroups : kMostChunks;
    if (where.placement != Placement::V && max_chunks * ranks < layers_)
      made_.left_out.insert(fmt::format("more than {} stages on a rank", max_chunks));
    std::vector<int> list;
    for (int chunks = 2; chunks <= max_chunks && chunks * ranks <= layers_; ++chunks)
      if (chunks == 2 || where.placement == Placement::Loop || (where.placement == Placement::Wave && chunks % 2 == 0))
        list.push_back(chunks);
    return list;
  }

  /// With groups, recomputation that few published recipes have.
  bool is_unusual(Recomputation kind) const {
    return configured_.experiment.software().prices && kind != configured_.experiment.plan.recompute &&
           (kind == Recomputation::Outputs || kind == Recomputation::Half);
  }

  /// Whether sums in buckets next to the last backward are another run, which the scenario does not have.
  bool may_have_buckets(const PlanSpec& plan) const {
    const Experiment& e = configured_.experiment;
    return e.software().prices && e.software().buckets.cuts() && e.run.lowering.overlap && !e.run.buckets &&
           plan.replicas > 1;
  }

  bool too_many(int micro_batches, int ranks) {
    const bool too_many = micro_batches > std::max(configured_.experiment.run.micro_batches, kMostMicroBatches * ranks);
    if (too_many) made_.left_out.insert("micro-batches so small that there are more than 32 for each stage");
    return too_many;
  }

  bool takes_turns() const { return balanced_.share == Share::MicroBatches; }

  /// Whether replicas can divide micro-batches of this number of samples, or these micro-batches.
  bool can_share(int replicas, int size) const {
    if (takes_turns()) return (samples_ / size) % replicas == 0;
    return size % replicas == 0;
  }

  void chains() {
    const std::vector<int> sizes = divisors_of(samples_);
    const std::vector<Recomputation> kinds = with_own_kind(recomputations(configured_.model()));
    if (devices_ > kEveryCount)
      made_.left_out.insert(fmt::format(
          "numbers of stages and of replicas above 8 that neither divide {} nor are powers of two", devices_));
    for (const int ranks : counts_up_to(std::min(devices_, layers_), devices_))
      for (const int replicas : counts_up_to(std::min(devices_ / ranks, samples_), devices_))
        for (std::vector<DeviceId>& devices : orders_.lists(ranks, replicas)) {
          PlanVariant on_devices = on(std::move(devices));
          on_devices.plan.replicas = replicas;
          if (packs_.are_used()) {
            packed(on_devices, ranks, kinds);
            continue;
          }
          for (const int size : sizes)
            if (can_share(replicas, size) && !too_many(samples_ / size, ranks)) placed(on_devices, ranks, size, kinds);
        }
  }

  /// Plans in which a micro-batch of each replica is one pack.
  void packed(const PlanVariant& on_devices, int ranks, const std::vector<Recomputation>& kinds) {
    const StageShape shape = on_devices.plan.shape(ranks);
    for (const PackChoice& packs : packs_.choices_for(on_devices.plan)) {
      if (packs.replicas_differ && (shape.degrees.expert > 1 || shape.sums_each_pass())) {
        made_.left_out.insert("experts or weights that are divided over replicas with different packs");
        continue;
      }
      if (too_many(packs.packs->micro_batches, ranks)) continue;
      PlanVariant v = on_devices;
      v.packs = packs;
      placed(v, ranks, v.plan.replicas, kinds);
    }
  }

  bool has_linear() const {
    return std::any_of(placements_.begin(), placements_.end(),
                       [](const PlacementChoice& c) { return c.placement == Placement::Linear; });
  }

  /// Whether several stages of the only rank compute and keep what one stage does, which is another plan in the list.
  /// They differ from it where each recomputes all of itself, or has gradients to sum while another computes; in
  /// groups there are such sums without replicas, too.
  bool acts_as_one_stage(int ranks, int replicas, Recomputation recompute) const {
    return ranks == 1 && replicas == 1 && !configured_.experiment.software().prices &&
           recompute != Recomputation::Full && has_linear();
  }

  const std::vector<DeviceId>& devices_of(const PlanSpec& spec) const {
    return spec.devices ? *spec.devices : all_devices_;
  }

  /// A plan of `balanced` on these devices; on all where none are named.
  PlanVariant on(std::vector<DeviceId> devices) const {
    PlanVariant v{.plan = balanced_};
    if (!devices.empty()) v.plan.devices = std::move(devices);
    describe_devices(v);
    return v;
  }

  void describe_devices(PlanVariant& v) const {
    const std::vector<DeviceId>& devices = devices_of(v.plan);
    v.devices = static_cast<int>(devices.size());
    v.device_types = parts_.device_text(devices);
  }

  void placed(const PlanVariant& on_devices, int ranks, int size, const std::vector<Recomputation>& kinds) {
    for (const PlacementChoice& where : placements_)
      for (const int chunks : chunks_in(where, ranks)) {
        if (ranks * chunks > layers_) continue;
        for (const Recomputation recompute : kinds) {
          if (chunks > 1 && acts_as_one_stage(ranks, on_devices.plan.replicas, recompute)) continue;
          PlanVariant v = on_devices;
          v.placement = where.placement, v.chunks = chunks, v.both_ways = where.both_ways;
          v.plan.stages = ranks * chunks;
          v.is_unusual = chunks > kMostChunks || v.plan.dispatcher != balanced_.dispatcher || is_unusual(recompute) ||
                         (v.plan.sharding != StateSharding::None && v.plan.shard_within != balanced_.shard_within);
          if (where.placement != Placement::Linear && !where.both_ways) v.plan.placement = where.placement;
          if (recompute == Recomputation::None) offload(v, ranks, size);
          add(v, ranks, size, recompute);
          if (v.is_unusual || !may_have_buckets(v.plan)) continue;
          v.buckets = v.is_unusual = true;
          add(v, ranks, size, recompute);
          if (configured_.experiment.software().buckets.gradients.value <= 0) continue;
          v.large_buckets = true;
          add(std::move(v), ranks, size, recompute);
        }
      }
  }

  /// In place of recomputation: the least shares of stashes in host memory, where the cluster has that.
  void offload(PlanVariant v, int ranks, int size) {
    if (configured_.cluster().memories.empty() || v.plan.offload || !configured_.experiment.run.lowering.overlap)
      return;
    v.plan.offload = {.selective = true};
    v.is_unusual = true;
    add(std::move(v), ranks, size, Recomputation::None);
  }

  void groups() {
    for (std::vector<DeviceId>& devices : devices_of_groups(configured_, parts_, objective_.is_time())) {
      const PlanVariant on_devices = on(std::move(devices));
      for (const Degrees& d : group_divisions(configured_, balanced_.group, on_devices.devices))
        group_stages(d, on_devices.devices / d.devices(), on_devices);
    }
    if (!orders_.are_alike()) made_.left_out.insert("other orders and subsets of the devices");
  }

  void group_stages(const Degrees& degrees, int ranks, const PlanVariant& on_devices) {
    const std::vector<Recomputation> kinds =
        with_own_kind({Recomputation::None, Recomputation::Selective, Recomputation::Outputs, Recomputation::Half,
                       Recomputation::Layers});
    if (packs_.are_used())
      return with_shardings(degrees, on_devices, [&](const PlanVariant& v) { packed(v, ranks, kinds); });
    for (const int each : divisors_of(samples_)) {
      const std::int64_t size = std::int64_t{each} * (takes_turns() ? 1 : degrees.replicas);
      if (size > samples_ || samples_ % size != 0 || !can_share(degrees.replicas, static_cast<int>(size))) continue;
      if (std::find(std::begin(kSamples), std::end(kSamples), each) == std::end(kSamples)) {
        made_.left_out.insert("other numbers of samples for each replica than 1, 2, 3, 4, 6 and 8");
        continue;
      }
      with_shardings(degrees, on_devices,
                     [&](const PlanVariant& v) { placed(v, ranks, static_cast<int>(size), kinds); });
    }
  }

  /// Calls visit(variant) for each way to divide states and to reach experts.
  template <class Visit>
  void with_shardings(const Degrees& degrees, PlanVariant on_devices, Visit&& visit) {
    const int node_devices = configured_.experiment.rules->node.devices;
    for (const StateSharding sharding : shardings_of(degrees)) {
      PlanSpec& spec = on_devices.plan;
      spec.group = degrees;
      spec.replicas = degrees.replicas;
      spec.sharding = sharding;
      spec.reshard = sharding == StateSharding::Weights ? balanced_.reshard : std::nullopt;
      for (const int within : shard_groups_of(balanced_, node_devices, degrees, sharding))
        for (const ExpertDispatch dispatcher : dispatchers_of(balanced_, node_devices, degrees, names_dispatcher_)) {
          spec.shard_within = within;
          spec.dispatcher = dispatcher;
          visit(on_devices);
        }
    }
  }

  /// Each divides more than the one before, which takes less memory and more time in some models, less in others.
  std::vector<StateSharding> shardings_of(const Degrees& degrees) {
    if (degrees.replicas * degrees.context == 1) return {StateSharding::None};
    if (!limits_.other_shardings().empty()) made_.left_out.insert(limits_.other_shardings());
    return limits_.shardings();
  }

  void plans_of(const PlannerDef& def) {
    if (!has_linear() || !def.fields->find("micro_batch_size")) return;
    if (packs_.are_used()) {  // It may choose the replicas, which decide about the packs.
      made_.left_out.insert(fmt::format("the planner {}, for which packs are not made", def.name));
      return;
    }
    PlanSpec spec;
    try {
      spec = kept_options(def);
    } catch (const InputError& e) {
      made_.left_out.insert(fmt::format("the planner {} ({})", def.name, e.problems().front().message));
      return;
    }
    limit_effort(spec);
    for (const int size : divisors_of(samples_))
      for (const Recomputation recompute : recomputations(configured_.model())) {
        if (recompute != Recomputation::None && !def.fields->find("recompute")) continue;
        if (too_many(samples_ / size, devices_)) continue;
        PlanVariant v{.plan = spec, .searches = true};
        describe_devices(v);
        add(std::move(v), 0, size, recompute);
      }
  }

  /// `ranks`: 0 for a planner that chooses the stages itself.
  void add(PlanVariant v, int ranks, int size, Recomputation recompute) {
    stop_point();
    v.micro_batches = v.packs.packs ? v.packs.packs->micro_batches : samples_ / size;
    v.plan.micro_batch_size = size;
    // A planner that chooses for itself still does where nothing is recomputed.
    if (recompute != Recomputation::None) v.plan.recompute = recompute;
    try {
      set_bounds(v, ranks, devices_of(v.plan));
    } catch (const InputError&) {  // A layer cannot be divided so.
      return;
    }
    const bool is_on_devices = !v.plan.offload || v.plan.offload->optimizer == 0;
    if (ranks > 0 && is_on_devices) v.memory = work_.memory(v.plan, ranks, v.packs);
    made_.list.push_back(std::move(v));
  }

  void set_bounds(PlanVariant& v, int ranks, const std::vector<DeviceId>& devices) {
    if (ranks == 0) {
      const AnyPlan& bound = any_plan(devices, v);
      v.bound = v.micro_batches * bound.period;
      v.amount = objective_.is_time() ? v.bound.value : v.micro_batches * bound.amount;
      return;
    }
    v.bound = v.micro_batches * work_.micro_batch(v.plan, ranks, v.both_ways ? 2 : 1, devices, v.packs);
    AmountBound amount = objective_.of_devices(devices);
    if (objective_.has_work_prices())
      amount.fixed += v.micro_batches * work_.price(v.plan, ranks, devices, objective_, v.packs);
    v.amount = amount.at(v.bound);
  }

  /// Bounds of a micro-batch in a plan of any planner, which may leave devices idle.
  struct AnyPlan {
    Seconds period;
    double amount = 0;
  };

  const AnyPlan& any_plan(const std::vector<DeviceId>& devices, const PlanVariant& v) {
    const auto [entry, is_new] = any_.try_emplace(v.plan.micro_batch_size);
    if (!is_new) return entry->second;
    const bounds::BoundQuery query{.costs = *configured_.experiment.costs,
                                   .devices = devices,
                                   .micro_batch = v.plan.micro_batch_size,
                                   .micro_batches = v.micro_batches};
    IdVector<DeviceTypeId, double> prices;
    for (const DeviceTypeId t : configured_.cluster().types.ids()) prices.push_back(objective_.least_price(t));
    return entry->second = {bounds::work(query).each, objective_.is_time() ? 0 : bounds::least_price(query, prices)};
  }

  const PlannedExperiment& configured_;
  const NetworkParts& parts_;
  const SearchObjective& objective_;
  const FrameworkLimits& limits_;
  PlanVariants made_;
  int samples_, layers_, devices_;
  std::vector<PlacementChoice> placements_;
  PlanSpec balanced_;
  bool names_dispatcher_;  ///< The scenario does.
  DeviceOrders orders_;
  std::vector<DeviceId> all_devices_;
  WorkBound work_;
  PackChoices packs_;
  std::map<int, AnyPlan> any_;  ///< [samples of a micro-batch]
};

}  // namespace

Placement placement_of(const ScheduleDef& def) {
  return def.placement == Placement::Any ? Placement::Linear : def.placement;
}

PlanVariants plan_variants(const PlannedExperiment& configured, const std::vector<const ScheduleDef*>& schedules,
                           const NetworkParts& parts, const SearchObjective& objective, const FrameworkLimits& limits,
                           const std::vector<std::string>& pack_fields) {
  return VariantMaker(configured, schedules, parts, objective, limits, pack_fields).make();
}

}  // namespace stagecraft
