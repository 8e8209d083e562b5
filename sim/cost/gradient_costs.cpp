// Sums of gradients, gathers of weights and steps of the optimizer.

#include "sim/cost/cost_rules.hpp"

namespace stagecraft {

OpCollectives over_data(CollectiveKind kind, GroupPart part, double dense, double experts, double exposed,
                        const StageShape& shape, const CostRules& rules, DeviceTypeId type) {
  OpCollectives list;
  const auto add = [&](const ShardGroups& groups, double bytes, bool of_experts) {
    const GroupShape& group = part == GroupPart::AcrossCopies ? groups.outer : groups.inner;
    if (group.ranks <= 1 || bytes <= 0) return;
    list.push_back({.axis = Axis::Data,
                    .of_experts = of_experts,
                    .kind = kind,
                    .part = part,
                    .bytes = Bytes{bytes},
                    .exposed = exposed,
                    .cost = rules.ring_time(kind, group, Bytes{bytes}, type)});
  };
  add(shard_groups(shape, rules.node), dense, false);
  add(expert_shard_groups(shape, rules.node), experts, true);
  return list;
}

GradientTimes gradient_times(double dense, double experts, const StageShape& shape, const CostRules& rules,
                             DeviceTypeId type) {
  const ShardGroups groups = shard_groups(shape, rules.node), expert_groups = expert_shard_groups(shape, rules.node);
  const auto exposed = [&](CollectiveKind kind, const GroupShape& group, const GroupShape& expert_group, double bytes,
                           double expert_bytes) {
    return (1 - rules.software.data_overlap) *
           (rules.ring_time(kind, group, Bytes{bytes * dense}, type) +
            rules.ring_time(kind, expert_group, Bytes{expert_bytes * experts}, type));
  };
  const auto over = [&](CollectiveKind kind, double bytes) {
    return exposed(kind, groups.inner, expert_groups.inner, bytes, bytes);
  };
  const double gradient = rules.software.gradient_bytes;
  if (shape.sharding == StateSharding::None) return {over(CollectiveKind::AllReduce, gradient), {}};
  const Seconds copies = exposed(CollectiveKind::AllReduce, groups.outer, expert_groups.outer,
                                 gradient / shape.shards(), gradient / shape.expert_shards());
  return {(shape.sums_each_pass() ? Seconds{} : over(CollectiveKind::ReduceScatter, gradient)) + copies,
          shape.gathers_each_pass() ? Seconds{} : over(CollectiveKind::AllGather, rules.gathered_bytes)};
}

GroupPart part_with_states(const StageShape& shape) {
  return shape.shard_copies() > 1 ? GroupPart::InsideCopies : GroupPart::Whole;
}

OpCollectives sum_of_gradients(double dense, double experts, const StageShape& shape, const CostRules& rules,
                               DeviceTypeId type) {
  const double bytes = rules.software.gradient_bytes;
  const auto over = [&](CollectiveKind kind, GroupPart part, double of_dense, double of_experts) {
    return over_data(kind, part, of_dense * bytes, of_experts * bytes, 1, shape, rules, type);
  };
  if (shape.sharding == StateSharding::None) return over(CollectiveKind::AllReduce, GroupPart::Whole, dense, experts);
  OpCollectives list;
  if (!shape.sums_each_pass()) list = over(CollectiveKind::ReduceScatter, part_with_states(shape), dense, experts);
  if (shape.shard_copies() > 1)
    append(list,
           over(CollectiveKind::AllReduce, GroupPart::AcrossCopies, dense / shape.shards(),
                experts / shape.expert_shards()),
           true);
  return list;
}

OpCollectives gather_of_weights(double dense, double experts, const StageShape& shape, const CostRules& rules,
                                DeviceTypeId type) {
  if (shape.sharding == StateSharding::None || shape.gathers_each_pass()) return {};
  return over_data(CollectiveKind::AllGather, part_with_states(shape), rules.gathered_bytes * dense,
                   rules.gathered_bytes * experts, 1 - rules.software.data_overlap, shape, rules, type);
}

Seconds optimizer_time(double dense, double experts, const StageShape& shape, const CostRules& rules,
                       DeviceTypeId type) {
  const double updated = dense / shape.shards() + experts / shape.expert_shards();
  return Bytes{updated * rules.software.optimizer_traffic + (dense + experts) * rules.software.gradient_traffic} /
         rules.accelerators[type].streaming_rate();
}

}  // namespace stagecraft
