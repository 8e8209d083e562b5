#include "sim/cost/cost_rules.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/cluster/link_collectives.hpp"
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

/// The first device of each host, and of two hosts if there are as many.
std::vector<DeviceId> first_devices(const Cluster& cluster) {
  std::vector<DeviceId> first;
  for (const DeviceId d : cluster.devices.ids())
    if (first.empty() || cluster.devices[d].host != cluster.devices[first.back()].host) first.push_back(d);
  if (first.size() > 2) first.resize(2);
  return first;
}

/// Dense parameters and experts have different groups.
OpCollectives over_data(CollectiveKind kind, double dense, double experts, double exposed, const StageShape& shape,
                        const CostRules& rules, DeviceTypeId type) {
  OpCollectives list;
  const auto add = [&](const GroupShape& group, double bytes, bool of_experts) {
    if (group.ranks <= 1 || bytes <= 0) return;
    list.push_back({.axis = Axis::Data,
                    .of_experts = of_experts,
                    .kind = kind,
                    .bytes = Bytes{bytes},
                    .exposed = exposed,
                    .cost = rules.ring_time(kind, group, Bytes{bytes}, type)});
  };
  add(data_group(shape.degrees, rules.node), dense, false);
  add(expert_data_group(shape.degrees, rules.node), experts, true);
  return list;
}

/// Whether each pass of a layer gathers its weights, and whether each backward sums its gradients.
bool gathers_each_pass(const StageShape& shape) { return shape.sharding == StateSharding::Weights && shape.reshard; }
bool sums_each_pass(const StageShape& shape) {
  return gathers_each_pass(shape) || shape.sharding == StateSharding::Gradients;
}

class PassBuilder {
 public:
  PassBuilder(const std::vector<Operation>& operations, const StageShape& shape, const CostRules& rules,
              DeviceTypeId type, const Precision& precision, double samples)
      : operations_(operations),
        shape_(shape),
        rules_(rules),
        type_(type),
        device_(rules.accelerators[type]),
        collectives_(collectives_of(operations, shape, samples, precision.activation, rules.software.dispatch_bytes)) {
    const Degrees& d = shape.degrees;
    kernels_ = kernels_of(operations, {d.tensor, d.sequence, d.context, d.expert, d.expert_tensor}, samples,
                          rules.formats(type), rules.software);
    core_ = kernel_time(core_of(kernels_.forward), device_).attention;
  }

  LayerPasses passes() const {
    PassCollectives forward = collectives(Pass::Forward), input = collectives(Pass::InputGradient);
    PassCollectives weight = collectives(Pass::WeightGradient), backward = input;
    add_weights(forward, input, weight, backward);
    backward.tensor += weight.tensor, backward.context += weight.context, backward.expert += weight.expert;
    backward.launches += weight.launches;
    return {.forward = time(kernels_.forward, forward),
            .input_gradient = time(kernels_.input_gradient, input),
            .weight_gradient = time(kernels_.weight_gradient, weight),
            .backward = time(kernels_.backward(), backward),
            .recompute = recompute(forward)};
  }

  EachPass<OpCollectives> op_collectives() const {
    EachPass<OpCollectives> lists{.forward = op_collectives(Pass::Forward),
                                  .input_gradient = op_collectives(Pass::InputGradient),
                                  .weight_gradient = op_collectives(Pass::WeightGradient)};
    // What a layer recomputes has the weights that its backward gathers anyway.
    if (shape_.recomputes_layers() || shape_.recomputes_all()) lists.recompute = lists.forward;
    const auto add = [](OpCollectives& list, const OpCollectives& more) {
      list.insert(list.end(), more.begin(), more.end());
    };
    add(lists.forward, weight_collectives(Pass::Forward));
    add(lists.input_gradient, weight_collectives(Pass::InputGradient));
    add(lists.weight_gradient, weight_collectives(Pass::WeightGradient));
    lists.backward = lists.input_gradient;
    add(lists.backward, lists.weight_gradient);
    return lists;
  }

 private:
  TimeByClass time(const std::vector<Kernel>& kernels, const PassCollectives& collectives) const {
    return pass_time(kernels, collectives, device_, rules_.software);
  }

  TimeByClass recompute(PassCollectives forward) const {
    forward.weights = {};  // The backward gathers the weights anyway.
    if (shape_.recomputes_attention()) return time(core_of(kernels_.forward), {});
    if (shape_.recomputes_half())
      return pass_time(0.5 * kernel_time(kernels_.forward, device_), launch_count(kernels_.forward),
                       {.launches = forward.launches}, device_, rules_.software);
    return shape_.recomputes_layers() || shape_.recomputes_all() ? time(kernels_.forward, forward) : TimeByClass{};
  }

  Seconds one(const LayerCollective& c, const GroupShape& group) const {
    return rules_.time_of(c.kind, group, c.bytes, type_);
  }

  /// With one copy of a row for each node, a row that goes to k experts on N nodes leaves its own for an expected
  /// (N - 1)(1 - (1 - 1/N)^k) others, or for M (N - 1)/N where it goes to M nodes; inside, all its copies move. This is
  /// the array that the members of equal place on all nodes exchange so that each row leaves as often.
  Bytes across_nodes(const LayerCollective& c) const {
    const double nodes = expert_group(shape_.degrees, rules_.node).nodes();
    const double others = c.nodes > 0 ? std::min<double>(c.nodes, nodes) * (nodes - 1) / nodes
                                      : (nodes - 1) * (1 - std::pow(1 - 1 / nodes, c.active));
    return c.bytes * (others / c.active * nodes / (nodes - 1));
  }

  bool has_one_copy_per_node(const LayerCollective& c) const {
    return c.axis == Axis::Expert && c.kind == CollectiveKind::AllToAll && c.active > 0 &&
           shape_.dispatcher == ExpertDispatch::PerNode && expert_group(shape_.degrees, rules_.node).nodes() > 1;
  }

  GroupShape inside_nodes() const {
    const GroupShape group = expert_group(shape_.degrees, rules_.node);
    return {.ranks = group.local(), .stride = group.stride};
  }

  Seconds across_time(const LayerCollective& c) const {
    const GroupShape group = expert_group(shape_.degrees, rules_.node);
    const int nodes = group.nodes();
    const Bytes bytes = across_nodes(c);
    if (device_.collectives_by_links)
      return rules_.time_of(c.kind, {.ranks = nodes, .ranks_per_node = 1, .stride = group.stride * group.local()},
                            bytes, type_);
    return ring_share(nodes, 1) * bytes / (kCardShare * rules_.node.card) + 2 * kNodeLatency;
  }

  Seconds exchange_time(const LayerCollective& c) const {
    if (!has_one_copy_per_node(c)) return one(c, expert_group(shape_.degrees, rules_.node));
    return std::max(one(c, inside_nodes()), across_time(c));
  }

  /// A collective, if nothing hid it.
  Seconds full_time(const LayerCollective& c) const {
    const Degrees& d = shape_.degrees;
    switch (c.axis) {
      case Axis::Tensor:
        return one(c, tensor_group(d, rules_.node));
      case Axis::Context:
        return one(c, context_group(d, rules_.node));
      case Axis::Expert:
        return c.kind == CollectiveKind::AllToAll ? exchange_time(c) : one(c, expert_tensor_group(d, rules_.node));
      case Axis::Data:
        break;
    }
    return {};
  }

  bool is_hidden_regather(const LayerCollective& c) const {
    return c.pass == Pass::WeightGradient && c.axis == Axis::Tensor && rules_.software.hides_regather;
  }

  /// What nothing hides of it. A part of a ring hides behind the attention on the part before.
  Seconds exposed_time(const LayerCollective& c, Seconds full) const {
    const SoftwareStack& software = rules_.software;
    if (is_hidden_regather(c)) return {};
    switch (c.axis) {
      case Axis::Tensor:
        return (1 - software.tensor_overlap) * full;
      case Axis::Context: {
        const double context = shape_.degrees.context;
        const double parts = c.ring ? (context - 1.0) / context * (c.pass == Pass::Forward ? 1 : 2.5) : 0;
        return std::max(Seconds{}, full - parts * core_);
      }
      case Axis::Expert:
        return (1 - software.expert_overlap) * full;
      case Axis::Data:
        break;
    }
    return {};
  }

  PassCollectives collectives(Pass pass) const {
    PassCollectives sum;
    for (const LayerCollective& c : collectives_) {
      if (c.pass != pass) continue;
      if (!is_hidden_regather(c)) ++sum.launches;
      Seconds& of_axis = c.axis == Axis::Tensor ? sum.tensor : c.axis == Axis::Context ? sum.context : sum.expert;
      of_axis += exposed_time(c, full_time(c));
    }
    return sum;
  }

  OpCollectives op_collectives(Pass pass) const {
    OpCollectives list;
    for (const LayerCollective& c : collectives_) {
      if (c.pass != pass) continue;
      const Seconds full = full_time(c);
      OpCollective op{.axis = c.axis, .kind = c.kind, .bytes = c.bytes, .cost = full};
      op.exposed = full.value > 0 ? exposed_time(c, full) / full : 1;
      op.of_experts = c.axis == Axis::Expert;
      if (!has_one_copy_per_node(c)) {
        list.push_back(op);
        continue;
      }
      op.part = GroupPart::InsideNodes;
      list.push_back(op);
      op.part = GroupPart::AcrossNodes;
      op.bytes = across_nodes(c);
      op.parallel = true;
      list.push_back(op);
    }
    return list;
  }

  struct ParameterCounts {
    double dense = 0, experts = 0;
  };

  /// Parameters of one device.
  ParameterCounts parameter_counts() const {
    ParameterCounts sum;
    for (const Operation& op : operations_) {
      const ParametersByClass counts = parameters_by_class(op);
      sum.experts += counts[ParameterClass::Expert] / (shape_.degrees.expert * shape_.degrees.expert_tensor);
      sum.dense += counts[ParameterClass::Divided] / shape_.degrees.tensor + counts[ParameterClass::Replicated];
    }
    return sum;
  }

  /// These collectives as instructions. Where the stack gathers ahead they run next to the computation of their op.
  OpCollectives weight_collectives(Pass pass) const {
    const auto [dense, experts] = parameter_counts();
    const double exposed = rules_.software.gathers_ahead ? 0 : 1, bytes = rules_.software.gradient_bytes;
    if (pass != Pass::WeightGradient)
      return gathers_each_pass(shape_)
                 ? over_data(CollectiveKind::AllGather, 2 * dense, 2 * experts, exposed, shape_, rules_, type_)
                 : OpCollectives{};
    return sums_each_pass(shape_) ? over_data(CollectiveKind::ReduceScatter, bytes * dense, bytes * experts, exposed,
                                              shape_, rules_, type_)
                                  : OpCollectives{};
  }

  /// Divided weights are gathered before each pass; their gradients, or gradients alone, are summed after each
  /// backward.
  void add_weights(PassCollectives& forward, PassCollectives& input, PassCollectives& weight,
                   PassCollectives& backward) const {
    const bool gathers = gathers_each_pass(shape_);
    if (!sums_each_pass(shape_)) return;
    const ParameterCounts counts = parameter_counts();
    const auto over = [&](CollectiveKind kind, double bytes) {
      return rules_.ring_time(kind, shard_groups(shape_, rules_.node).inner, Bytes{bytes * counts.dense}, type_) +
             rules_.ring_time(kind, expert_shard_groups(shape_, rules_.node).inner, Bytes{bytes * counts.experts},
                              type_);
    };
    const Seconds gather = gathers ? over(CollectiveKind::AllGather, 2) : Seconds{};
    const Seconds scatter = over(CollectiveKind::ReduceScatter, rules_.software.gradient_bytes);
    forward.weights = input.weights = gather;
    weight.weights = scatter;
    backward.weights = gather + scatter;
    const bool recomputes = shape_.recomputes_layers() || shape_.recomputes_half();
    if (recomputes && rules_.software.gathers_ahead)  // The recomputation hides them too.
      backward.weights = std::max(Seconds{}, backward.weights - (shape_.recomputes_half() ? 0.5 : 1) *
                                                                    kernel_time(kernels_.forward, device_).total());
  }

  const std::vector<Operation>& operations_;
  const StageShape& shape_;
  const CostRules& rules_;
  DeviceTypeId type_;
  const Accelerator& device_;
  std::vector<LayerCollective> collectives_;
  PassKernels kernels_;
  Seconds core_;  ///< Attention of the forward.
};

}  // namespace

NodeShape node_shape(const Cluster& cluster) {
  std::map<std::string, int> counts;
  for (const Device& d : cluster.devices) ++counts[d.host];
  NodeShape node;
  if (counts.count("") > 0) return node;  // A device without a host is a node by itself.
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
  const RankSizes sizes = d.dense_sizes();
  const int replica = d.order.stride(RankAxis::Data, sizes), context = d.order.stride(RankAxis::Context, sizes);
  const bool context_first = context < replica || d.replicas == 1;
  const int near = context_first ? d.context : d.replicas, far = context_first ? d.replicas : d.context;
  return spread_twice(near, context_first ? context : replica, far, context_first ? replica : context, node);
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

Accelerator accelerator_from_rates(const DeviceType& type, NumberFormat format, const Cluster& cluster) {
  Accelerator a;
  a.name = type.name;
  for (const NumberFormat f : {format, NumberFormat::Bf16, NumberFormat::Fp16})
    a.formats[f] = {.peak = type.peak, .share = type.efficiency};
  a.memory = type.memory;
  a.memory_rate = type.memory_bandwidth;
  a.memory_share = a.permute_share = 1;
  a.tiles = {{1, 1}};
  a.attention_forward = a.attention_backward = {.share = type.efficiency};
  a.grouped = {.share = type.efficiency};
  a.launch = type.launch;
  if (cluster.devices.size() > 1) {
    const LinkRate link = LinkTable(cluster).link(DeviceId{0}, DeviceId{1});
    a.collectives_by_links = true;
    a.collectives = {.alpha = {}, .hop = 2 * link.latency, .bus = link.bandwidth};  // Each way pays each hop once.
  }
  return a;
}

LayerPasses passes_of(const std::vector<Operation>& operations, const StageShape& shape, const CostRules& rules,
                      DeviceTypeId type, const Precision& precision, double samples) {
  return PassBuilder(operations, shape, rules, type, precision, samples).passes();
}

EachPass<OpCollectives> collectives_of(const std::vector<Operation>& operations, const StageShape& shape,
                                       const CostRules& rules, DeviceTypeId type, const Precision& precision,
                                       double samples) {
  return PassBuilder(operations, shape, rules, type, precision, samples).op_collectives();
}

Seconds CostRules::time_of(CollectiveKind kind, const GroupShape& group, Bytes bytes, DeviceTypeId type) const {
  const Accelerator& device = accelerators[type];
  if (device.collectives_by_links) return links->time(kind, group, bytes);
  return collective_time(kind, group, bytes, device.collectives, node.card);
}

Seconds CostRules::ring_time(CollectiveKind kind, const GroupShape& group, Bytes bytes, DeviceTypeId type) const {
  const Accelerator& device = accelerators[type];
  if (device.collectives_by_links) return links->ring_time(kind, group, bytes);
  return collective_time(kind, group, bytes, device.collectives, node.card);
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
  return {(sums_each_pass(shape) ? Seconds{} : over(CollectiveKind::ReduceScatter, gradient)) + copies,
          gathers_each_pass(shape) ? Seconds{} : over(CollectiveKind::AllGather, 2)};
}

OpCollectives sum_of_gradients(double dense, double experts, const StageShape& shape, const CostRules& rules,
                               DeviceTypeId type) {
  if (sums_each_pass(shape)) return {};
  const CollectiveKind kind =
      shape.sharding == StateSharding::None ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter;
  const double bytes = rules.software.gradient_bytes;
  return over_data(kind, bytes * dense, bytes * experts, 1, shape, rules, type);
}

OpCollectives gather_of_weights(double dense, double experts, const StageShape& shape, const CostRules& rules,
                                DeviceTypeId type) {
  if (shape.sharding == StateSharding::None || gathers_each_pass(shape)) return {};
  return over_data(CollectiveKind::AllGather, 2 * dense, 2 * experts, 1 - rules.software.data_overlap, shape, rules,
                   type);
}

Seconds optimizer_time(double dense, double experts, const StageShape& shape, const CostRules& rules,
                       DeviceTypeId type) {
  const double updated = dense / shape.shards() + experts / shape.expert_shards();
  return Bytes{updated * rules.software.optimizer_traffic + (dense + experts) * rules.software.gradient_traffic} /
         rules.accelerators[type].streaming_rate();
}

}  // namespace stagecraft
