// Size and spread over nodes of every group of a stage, before its devices are chosen, so that planners can price
// collectives.

#include "sim/cost/group_shapes.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/cluster/link_table.hpp"

namespace stagecraft {
namespace {

/// Members of a group that stand `stride` devices apart, with as many on a node as fit there.
GroupShape spread(int ranks, int stride, const NodeShape& node) {
  return {.ranks = ranks, .ranks_per_node = std::clamp(node.devices / stride, 1, std::max(1, ranks)), .stride = stride};
}

/// `far` groups of `near` members each. A node has all members that lie whole strides from its first device.
GroupShape spread_twice(int near, int near_stride, int far, int far_stride, const NodeShape& node) {
  int there = 0;
  for (int i = 0; i < far && i * far_stride < node.devices; ++i)
    there += std::clamp((node.devices - i * far_stride) / near_stride, 0, near);
  return {.ranks = near * far,
          .ranks_per_node = std::clamp(there, 1, std::max(1, near * far)),
          .stride = near_stride,
          .near = near,
          .far_stride = far_stride};
}

/// All devices of two axes with as many ranks, numbered first along the axis with the smaller stride.
GroupShape spread_over(std::pair<RankAxis, int> near, std::pair<RankAxis, int> far, const Degrees& d,
                       const RankSizes& sizes, const NodeShape& node) {
  int stride = d.order.stride(near.first, sizes), far_stride = d.order.stride(far.first, sizes);
  if (stride >= far_stride && far.second > 1) std::swap(near, far), std::swap(stride, far_stride);
  return spread_twice(near.second, stride, far.second, far_stride, node);
}

/// The first device of each node, and of two nodes if there are as many.
std::vector<DeviceId> first_devices(const Cluster& cluster) {
  std::vector<DeviceId> first;
  for (const DeviceId d : cluster.devices.ids())
    if (first.empty() || !cluster.on_one_node(d, first.back())) first.push_back(d);
  if (first.size() > 2) first.resize(2);
  return first;
}

}  // namespace

NodeShape node_shape(const Cluster& cluster) {
  std::map<int, int> counts;
  for (const int n : node_of(cluster)) ++counts[n];
  NodeShape node;
  node.devices = std::min_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
                   return a.second < b.second;
                 })->second;
  const std::vector<DeviceId> first = first_devices(cluster);
  if (first.size() < 2) return node;
  // Each device sends to its neighbor of the same number on the other node.
  const Router router(cluster);
  std::map<LinkId, int> messages;
  for (int i = 0; i < node.devices; ++i)
    for (const Hop& hop : router.require(DeviceId{first[0].value + i}, DeviceId{first[1].value + i}).hops)
      ++messages[hop.link];
  node.card = cluster.links[messages.begin()->first].bandwidth / messages.begin()->second;
  for (const auto& [link, count] : messages) node.card = std::min(node.card, cluster.links[link].bandwidth / count);
  return node;
}

GroupShape tensor_group(const Degrees& d, const NodeShape& node) {
  return spread(d.tensor, d.order.stride(RankAxis::Tensor, d.dense_sizes()), node);
}
GroupShape context_group(const Degrees& d, const NodeShape& node) {
  return spread(d.context, d.order.stride(RankAxis::Context, d.dense_sizes()), node);
}
GroupShape expert_group(const Degrees& d, const NodeShape& node) {
  return spread(d.expert, d.order.stride(RankAxis::Expert, d.expert_sizes()), node);
}
GroupShape expert_tensor_group(const Degrees& d, const NodeShape& node) {
  return spread(d.expert_tensor, d.order.stride(RankAxis::Tensor, d.expert_sizes()), node);
}
GroupShape data_group(const Degrees& d, const NodeShape& node) {
  return spread_over({RankAxis::Context, d.context}, {RankAxis::Data, d.replicas}, d, d.dense_sizes(), node);
}
GroupShape expert_data_group(const Degrees& d, const NodeShape& node) {
  return spread(d.expert_replicas(), d.order.stride(RankAxis::Data, d.expert_sizes()), node);
}

namespace {

/// Without a state to divide, or with one group, the whole group is the inner one.
ShardGroups cut(const GroupShape& whole, int copies) {
  const int inner = whole.ranks / copies;
  ShardGroups groups{whole, whole};
  groups.inner.ranks = inner;
  groups.inner.ranks_per_node = std::min(whole.local(), inner);
  groups.outer.ranks = copies;
  groups.outer.ranks_per_node = std::clamp(whole.local() / std::max(1, inner), 1, copies);
  groups.outer.step = inner;
  return groups;
}

}  // namespace

ShardGroups shard_groups(const StageShape& shape, const NodeShape& node) {
  return cut(data_group(shape.degrees, node), shape.shard_copies());
}

ShardGroups expert_shard_groups(const StageShape& shape, const NodeShape& node) {
  return cut(expert_data_group(shape.degrees, node), shape.shard_copies());
}

namespace {

/// All devices that hold the experts of a layer once.
GroupShape all_experts_group(const Degrees& d, const NodeShape& node) {
  return spread_over({RankAxis::Tensor, d.expert_tensor}, {RankAxis::Expert, d.expert}, d, d.expert_sizes(), node);
}

GroupShape exchange_group(const Collective& c, const GroupShape& whole) {
  if (c.part == GroupPart::InsideNodes) return {.ranks = whole.local(), .stride = whole.stride};
  if (c.part != GroupPart::AcrossNodes) return whole;
  return {.ranks = whole.nodes(), .ranks_per_node = 1, .stride = whole.stride * whole.local()};
}

}  // namespace

GroupShape group_of(const Collective& c, const StageShape& shape, const NodeShape& node) {
  const Degrees& d = shape.degrees;
  switch (c.axis) {
    case Axis::Tensor:
      return tensor_group(d, node);
    case Axis::Context:
      return context_group(d, node);
    case Axis::Expert:
      if (c.kind == CollectiveKind::AllToAll) return exchange_group(c, expert_group(d, node));
      return shape.dispatcher == ExpertDispatch::AllGather ? all_experts_group(d, node) : expert_tensor_group(d, node);
    case Axis::Data:
      break;
  }
  const ShardGroups groups = c.of_experts ? expert_shard_groups(shape, node) : shard_groups(shape, node);
  return c.part == GroupPart::AcrossCopies ? groups.outer : groups.inner;
}

}  // namespace stagecraft
