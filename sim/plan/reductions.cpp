// Derives from a plan which devices sum which gradients and which updates wait for each other, prices these sums, and
// cuts them into buckets.

#include "sim/plan/reductions.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/cluster/link_collectives.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/cost/stage_cost.hpp"
#include "sim/model/model_graph.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {
namespace {

using Devices = std::vector<DeviceId>;

int device_count(const std::vector<Devices>& lists) {
  int count = 0;
  for (const Devices& list : lists)
    for (const DeviceId device : list) count = std::max(count, device.value + 1);
  return count;
}

/// The devices of all lists, each once, in this order.
Devices unique_devices(const std::vector<Devices>& lists) {
  Devices unique;
  IdVector<DeviceId, bool> listed(device_count(lists), false);
  for (const Devices& list : lists)
    for (const DeviceId device : list) {
      if (!listed[device]) unique.push_back(device);
      listed[device] = true;
    }
  return unique;
}

/// Puts one device of a holder into each group; false where two of them are in the same group already.
bool join(const Devices& holder, std::vector<Devices>& groups, IdVector<DeviceId, int>& group_of) {
  std::vector<bool> taken(groups.size(), false);
  Devices others;
  for (const DeviceId device : holder) {
    const int group = group_of[device];
    if (group < 0) {
      others.push_back(device);
      continue;
    }
    if (taken[group]) return false;
    taken[group] = true;
  }
  auto next = others.begin();
  for (int g = 0; g < std::ssize(groups); ++g) {
    if (taken[g]) continue;
    group_of[*next] = g;
    groups[g].push_back(*next++);
  }
  return true;
}

/// Groups with one device of each holder; none where the holders are of different sizes or overlap too much.
std::vector<Devices> parallel_groups(const std::vector<Devices>& holders) {
  std::vector<Devices> groups(holders.front().size());
  IdVector<DeviceId, int> group_of(device_count(holders), -1);
  for (const Devices& holder : holders)
    if (holder.size() != groups.size() || !join(holder, groups, group_of)) return {};
  return groups;
}

/// The process groups of tied parameters, from the devices of each holder, which have the sum of that holder. With
/// equally many devices the k-th ones of all holders form a group, as in Megatron-LM's embedding groups, and a device
/// of several holders is in one group alone. Otherwise all devices form one group.
std::vector<Devices> tied_groups(const std::vector<Devices>& holders) {
  std::vector<Devices> groups = parallel_groups(holders);
  if (groups.empty()) groups.push_back(unique_devices(holders));
  std::erase_if(groups, [](const Devices& group) { return group.size() < 2; });
  return groups;
}

struct TiedParameters {
  std::string name;
  std::vector<StageId> stages;
  Bytes gradient;
};

/// The ties between layers of different stages, in the order of the model.
std::vector<TiedParameters> tied_parameters(const Plan& plan, const ModelGraph& model) {
  std::vector<TiedParameters> ties;
  for (const Layer& layer : model.layers) {
    if (layer.tie.empty()) continue;
    const auto it = std::find_if(ties.begin(), ties.end(), [&](const auto& tie) { return tie.name == layer.tie; });
    TiedParameters& tie = it != ties.end() ? *it : ties.emplace_back(TiedParameters{layer.tie, {}, {}});
    tie.gradient = std::max(tie.gradient, Bytes{layer.parameters * model.precision.gradient});
  }
  std::erase_if(ties, [](const TiedParameters& tie) { return tie.gradient.value <= 0; });
  for (int s = 0; s < plan.stage_count() && !ties.empty(); ++s) {
    const Stage& stage = plan.stage(StageId{s});
    for (TiedParameters& tie : ties)
      if (std::any_of(stage.shape.layers.begin(), stage.shape.layers.end(),
                      [&](LayerId id) { return model.layers[id].tie == tie.name; }))
        tie.stages.emplace_back(s);
  }
  return ties;
}

class ReductionList {
 public:
  explicit ReductionList(const Plan& plan) : plan_(plan), of_replicas_(plan.stages.size()) {
    for (int s = plan.stage_count() - 1; s >= 0; --s)
      if (first_copy(StageId{s}) == StageId{s}) add_replicas(StageId{s});
  }

  /// Nothing is added where one stage and its twin are the only holders: the sum of their replicas has it all.
  void add_tied(const TiedParameters& tie) {
    Reduction r{
        .source = ReductionSource::TiedParameters, .name = tie.name, .stages = tie.stages, .bytes = tie.gradient};
    std::vector<Devices> holders;
    IdVector<StageId, bool> counted(plan_.stages.size(), false);
    for (const StageId s : tie.stages) {
      const StageId first = first_copy(s);
      if (counted[first]) continue;
      counted[first] = true;
      const ReductionId replicas = of_replicas_[first];
      if (replicas.valid()) r.after.push_back(replicas);
      const bool summed = replicas.valid() && !list[replicas].groups.empty();
      holders.push_back(summed ? list[replicas].groups.front() : plan_.stage(first).leaders);
    }
    if (holders.size() < 2) return;
    r.groups = tied_groups(holders);
    list.push_back(std::move(r));
  }

  IdVector<ReductionId, Reduction> list;

 private:
  /// The stage, or its twin if that comes earlier.
  StageId first_copy(StageId s) const {
    const StageId twin = plan_.stage(s).twin;
    return twin.valid() && twin < s ? twin : s;
  }

  void add_replicas(StageId s) {
    const Stage& stage = plan_.stage(s);
    Reduction r{.stages = {s}};
    Devices devices = stage.leaders;
    if (stage.twin.valid()) {
      r.stages.push_back(stage.twin);
      devices = unique_devices({stage.leaders, plan_.stage(stage.twin).leaders});
    }
    if (devices.size() < 2 && r.stages.size() < 2) return;
    if (devices.size() > 1) r.groups.push_back(std::move(devices));
    of_replicas_[s] = list.push_back(std::move(r));
  }

  const Plan& plan_;
  IdVector<StageId, ReductionId> of_replicas_;  ///< [first copy of a stage]; not valid where one device has it alone.
};

/// The first of all stages that reductions connect with a stage, directly or through others.
IdVector<StageId, StageId> first_connected(const Plan& plan) {
  IdVector<StageId, StageId> first;  // A stage that is connected with it and comes no later, or itself.
  for (const StageId s : plan.stages.ids()) first.push_back(s);
  const auto root = [&](StageId s) {
    while (first[s] != s) s = first[s] = first[first[s]];
    return s;
  };
  for (const Reduction& r : plan.reductions)
    for (const StageId s : r.stages) {
      const StageId a = root(r.stages.front()), b = root(s);
      first[std::max(a, b)] = std::min(a, b);
    }
  for (const StageId s : plan.stages.ids()) first[s] = root(s);
  return first;
}

/// Whether the list still fits the stages; a change of the stages after it was derived is a mistake of the caller. A
/// plan that stands for several has sums over fewer devices than all.
bool up_to_date(const Plan& plan) {
  if (plan.copies > 1) return true;
  const IdVector<ReductionId, Reduction> replicas = derive_reductions(plan);
  const auto expected = std::count_if(plan.reductions.begin(), plan.reductions.end(),
                                      [](const Reduction& r) { return r.source == ReductionSource::Replicas; });
  return std::ssize(replicas) == expected &&
         std::equal(replicas.begin(), replicas.end(), plan.reductions.begin(), [](const auto& a, const auto& b) {
           return a.source == b.source && a.stages == b.stages && a.groups == b.groups;
         });
}

/// Later stages first, each with its twin after it.
std::vector<StageId> update_order(const Plan& plan) {
  std::vector<StageId> order;
  for (int s = plan.stage_count() - 1; s >= 0; --s) {
    const StageId twin = plan.stage(StageId{s}).twin;
    if (twin.valid() && twin < StageId{s}) continue;
    order.emplace_back(s);
    if (twin.valid()) order.push_back(twin);
  }
  return order;
}

}  // namespace

IdVector<ReductionId, Reduction> derive_reductions(const Plan& plan) { return ReductionList(plan).list; }

IdVector<ReductionId, Reduction> derive_reductions(const Plan& plan, const ModelGraph& model) {
  ReductionList reductions(plan);
  if (!plan.has_whole_stages()) return std::move(reductions.list);  // Edges carry gradients, and stages update.
  for (Reduction& r : reductions.list) {
    const Stage& stage = plan.stage(r.stages.front());
    r.scatters = stage.shape.sharding != StateSharding::None;
    const DeviceParameters parts = device_parameters(stage.shape, model);
    const bool is_divided = stage.shape.degrees.divides() || !stage.shape.vocabulary.empty();
    const double parameters = is_divided ? parts.dense + parts.experts : parameters_of(stage.shape.layers, model);
    r.bytes = {parameters * model.precision.gradient};
  }
  for (const TiedParameters& tie : tied_parameters(plan, model)) reductions.add_tied(tie);
  return std::move(reductions.list);
}

namespace {

/// The members, and how many of them share the fullest node. A GroupShape has 0 there where all are on one.
GroupShape shape_of(const Devices& group, const Cluster& cluster) {
  const auto members = static_cast<int>(std::ssize(group));
  const int fullest = most_on_a_node(group, cluster);
  return {members, fullest == members ? 0 : fullest};
}

/// Prices of the sum and of the gather over the devices that hold the same parameters of a stage, where they stand.
///
/// Prices by shape know one rate between nodes, that of the first two. What the links between these very devices carry
/// can take longer: over a slow link between sites, or an oversubscribed network.
class ReplicaSums {
 public:
  ReplicaSums(const CostRules& rules, const StageShape& shape, DeviceTypeId type, const std::vector<Devices>& groups)
      : rules_(rules), shape_(shape), type_(type), groups_(groups) {}

  /// What a sum takes beyond the end of a backward, of which a stack hides the share `overlap`. A backward of the last
  /// micro-batch is there to hide it.
  Seconds sum(const DeviceParameters& p, double overlap, Seconds backward) const {
    const Collectives list = sum_of_gradients(p, shape_, rules_, type_);
    const Seconds min_time = min_time_of(list);
    return std::max(exposed_sum(list, overlap), min_time - std::min(overlap * min_time, backward));
  }

  /// How much longer than by its price the gather after the update takes, which is part of the sum here. A forward is
  /// there to hide it.
  Seconds longer_gather(const DeviceParameters& p, Seconds forward) const {
    const Collectives list = gather_of_weights(p, shape_, rules_, type_);
    const Seconds min_time = min_time_of(list),
                  hidden = std::min(rules_.software.hides(Overlap::Weights) * min_time, forward);
    return std::max(Seconds{}, min_time - hidden - exposed_of(list));
  }

 private:
  /// Dense parameters alone: experts are summed over other groups.
  Seconds min_time_of(const Collectives& list) const {
    for (const Collective& c : list)
      if (!c.of_experts && c.part != GroupPart::AcrossCopies) return floor_of(c).time(c.bytes);
    return {};
  }

  const LinkFloor& floor_of(const Collective& c) const {
    const Price price = rules_.price_by_shape(c, shape_, type_);
    // A gather carries what a reduce-scatter does.
    const bool is_gather = c.kind == CollectiveKind::AllGather;
    const auto [entry, is_new] =
        floors_.try_emplace({is_gather ? CollectiveKind::ReduceScatter : c.kind, c.axis, price.from});
    if (is_new) entry->second = rules_.floor(c, price, groups_);
    return entry->second;
  }

  const CostRules& rules_;
  const StageShape& shape_;
  DeviceTypeId type_;
  const std::vector<Devices>& groups_;
  mutable std::map<std::tuple<CollectiveKind, Axis, PriceSource>, LinkFloor> floors_;
};

/// A twin has the same parameters, so its devices count as further replicas. In the middle of an odd number of ranks it
/// is on the same devices.
StageShape shape_with_twin(const Stage& stage, const Reduction& r) {
  StageShape shape = stage.shape;
  if (!r.groups.empty())
    shape.degrees.replicas *= static_cast<int>(std::ssize(r.groups.front()) / std::ssize(stage.leaders));
  return shape;
}

}  // namespace

void price_reductions(Plan& plan, const CostTable& costs) {
  const CostRules& rules = costs.rules();
  for (Reduction& r : plan.reductions) {
    const Stage& stage = plan.stage(r.stages.front());
    const DeviceTypeId type = costs.cluster().devices[stage.leaders.front()].type;
    if (r.source == ReductionSource::Replicas) {
      const StageShape shape = shape_with_twin(stage, r);
      const DeviceParameters p = device_parameters(shape, costs.model());
      r.bytes = Bytes{(p.dense + p.experts) * rules.software.gradient_bytes};
      const StageCost cost = stage_cost(costs, shape, type, load_at_once(stage, 0));
      const ReplicaSums sums(rules, shape, type, r.groups);
      r.cost =
          sums.sum(p, rules.software.hides(Overlap::Gradients), cost.backward) + sums.longer_gather(p, cost.forward);
    } else {
      // Where holders are divided differently, the largest part takes the longest.
      int tensor = stage.shape.degrees.tensor;
      for (const StageId s : r.stages) tensor = std::min(tensor, plan.stage(s).shape.degrees.tensor);
      r.bytes = r.bytes / costs.model().precision.gradient * rules.software.gradient_bytes / tensor;
      r.cost = Seconds{};
      if (r.groups.empty()) continue;
      const Collective c{.axis = Axis::Data, .kind = CollectiveKind::AllReduce, .bytes = r.bytes};
      const Devices& ends = r.groups.front();
      const Price price = rules.price(c, shape_of(ends, costs.cluster()), type, &ends);
      r.cost = std::max(price.time, rules.floor(c, price, r.groups).time(c.bytes));
    }
  }
}

void cut_into_buckets(Plan& plan, const CostTable& costs, const BucketRule& rule) {
  for (Reduction& r : plan.reductions) {
    const StageId first = r.stages.front();
    const Stage& stage = plan.stage(first);
    if (r.source != ReductionSource::Replicas) continue;
    if (rule.on_first_stage && first != StageId{0}) continue;
    // Each pass sums its gradients; what is left are the sums over copies of the divided state.
    if (stage.shape.sums_each_pass() && stage.shape.shard_copies() < 2) continue;
    const DeviceTypeId type = costs.cluster().devices[stage.leaders.front()].type;
    const StageShape shape = shape_with_twin(stage, r);
    const DeviceParameters whole = device_parameters(shape, costs.model());
    const double parameters = whole.dense + whole.experts;
    if (parameters <= 0) continue;
    const Load load = load_at_once(stage, 0);
    for (const GradientBucket& bucket : gradient_buckets(costs, shape, type, load, rule, r.bytes.value / parameters))
      r.buckets.push_back(
          {.gradients = bucket, .bytes = (bucket.parameters.dense + bucket.parameters.experts) / parameters * r.bytes});
    if (!r.cost) continue;
    // Without the share of sums that a stack is said to hide: events show what is hidden. The last bucket has what the
    // gather after the update takes longer.
    const ReplicaSums sums(costs.rules(), shape, type, r.groups);
    for (ReductionBucket& bucket : r.buckets) bucket.cost = sums.sum(bucket.gradients.parameters, 0, {});
    *r.buckets.back().cost += sums.longer_gather(whole, stage_cost(costs, shape, type, load).forward);
  }
}

UpdateBarriers::UpdateBarriers(const Plan& plan)
    : index_(plan.stages.size(), -1), position_(plan.stages.size(), 0), reductions_(plan.stages.size()) {
  STAGECRAFT_CHECK(up_to_date(plan));
  for (const ReductionId r : plan.reductions.ids())
    for (const StageId s : plan.reductions[r].stages) reductions_[s].push_back(r);
  const IdVector<StageId, StageId> first = first_connected(plan);
  for (StageId s{plan.stage_count() - 1}; s.valid(); --s.value) {
    if (first[s] != s || reductions_[s].empty()) continue;
    index_[s] = static_cast<int>(std::ssize(barriers_));
    barriers_.emplace_back();
  }
  std::vector<std::vector<Devices>> devices(barriers_.size());
  for (const StageId s : plan.stages.ids()) {
    index_[s] = index_[first[s]];
    if (delays(s)) devices[index_[s]].push_back(plan.stage(s).leaders);
  }
  for (const StageId s : update_order(plan))
    if (delays(s)) barriers_[index_[s]].stages.push_back(s);
  for (const ReductionId r : plan.reductions.ids())
    barriers_[index_[plan.reductions[r].stages.front()]].reductions.push_back(r);
  int position = 0;
  for (int b = 0; b < std::ssize(barriers_); ++b) {
    barriers_[b].devices = unique_devices(devices[b]);
    for (const StageId s : barriers_[b].stages) position_[s] = position++;
  }
}

}  // namespace stagecraft
