#include "sim/cost/cost_rules.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/cluster/link_table.hpp"

namespace stagecraft {
namespace {

/// Members of a group that stand `stride` devices apart, with as many on a node as fit there.
GroupShape spread(int ranks, int stride, const NodeShape& node) {
  return {ranks, std::clamp(node.devices / stride, 1, std::max(1, ranks))};
}

/// `far` groups of `near` members each. A node has all members that lie whole strides from its first device.
GroupShape spread_twice(int near, int near_stride, int far, int far_stride, const NodeShape& node) {
  int there = 0;
  for (int i = 0; i < far && i * far_stride < node.devices; ++i)
    there += std::clamp((node.devices - i * far_stride) / near_stride, 0, near);
  return {near * far, std::clamp(there, 1, std::max(1, near * far))};
}

/// The first device of each host, and of two hosts if there are as many.
std::vector<DeviceId> first_devices(const Cluster& cluster) {
  std::vector<DeviceId> first;
  for (const DeviceId d : cluster.devices.ids())
    if (first.empty() || cluster.devices[d].host != cluster.devices[first.back()].host) first.push_back(d);
  if (first.size() > 2) first.resize(2);
  return first;
}

class PassBuilder {
 public:
  PassBuilder(const std::vector<Operation>& operations, const StageShape& shape, const CostRules& rules,
              DeviceTypeId type, const Precision& precision, double samples)
      : operations_(operations),
        shape_(shape),
        rules_(rules),
        device_(rules.accelerators[type]),
        collectives_(collectives_of(operations, shape, samples, precision.activation)) {
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
    return collective_time(c.kind, group, c.bytes, device_.collectives, rules_.node.card);
  }

  /// With one copy of a row for each node, a row that goes to k experts on N nodes leaves its own for an expected
  /// (N - 1)(1 - (1 - 1/N)^k) others, or for M (N - 1)/N where it goes to M nodes; inside, all its copies move.
  Seconds exchange_time(const LayerCollective& c) const {
    const GroupShape group = expert_group(shape_.degrees, rules_.node);
    const double nodes = group.nodes();
    if (shape_.dispatcher == ExpertDispatch::AllToAll || nodes == 1 || c.active == 0) return one(c, group);
    const double others = c.nodes > 0 ? std::min<double>(c.nodes, nodes) * (nodes - 1) / nodes
                                      : (nodes - 1) * (1 - std::pow(1 - 1 / nodes, c.active));
    const Seconds inside = one(c, GroupShape{group.local()});
    return std::max(inside, c.bytes * (others / c.active) / (kCardShare * rules_.node.card) + 2 * kNodeLatency);
  }

  /// What nothing hides of the collectives of a pass. A part of a ring hides behind the attention on the part before.
  PassCollectives collectives(Pass pass) const {
    PassCollectives sum;
    const Degrees& d = shape_.degrees;
    const SoftwareStack& software = rules_.software;
    for (const LayerCollective& c : collectives_) {
      if (c.pass != pass) continue;
      const bool regathers = pass == Pass::WeightGradient && c.axis == Axis::Tensor;
      if (!regathers || !software.hides_regather) ++sum.launches;
      switch (c.axis) {
        case Axis::Tensor:
          if (!regathers || !software.hides_regather)
            sum.tensor += (1 - software.tensor_overlap) * one(c, tensor_group(d, rules_.node));
          break;
        case Axis::Context: {
          const double parts = c.ring ? (d.context - 1.0) / d.context * (pass == Pass::Forward ? 1 : 2.5) : 0;
          sum.context += std::max(Seconds{}, one(c, context_group(d, rules_.node)) - parts * core_);
          break;
        }
        case Axis::Expert: {
          const bool exchanges = c.kind == CollectiveKind::AllToAll;
          const Seconds time = exchanges ? exchange_time(c) : one(c, expert_tensor_group(d, rules_.node));
          sum.expert += (1 - software.expert_overlap) * time;
          break;
        }
        case Axis::Data:
          break;
      }
    }
    return sum;
  }

  /// Divided weights are gathered before each pass; their gradients, or gradients alone, are summed after each
  /// backward.
  void add_weights(PassCollectives& forward, PassCollectives& input, PassCollectives& weight,
                   PassCollectives& backward) const {
    const bool gathers = shape_.sharding == StateSharding::Weights && shape_.reshard;
    const bool scatters = gathers || shape_.sharding == StateSharding::Gradients;
    if (!scatters) return;
    double dense = 0, experts = 0;
    for (const Operation& op : operations_) {
      const ParametersByClass counts = parameters_by_class(op);
      experts += counts[ParameterClass::Expert] / (shape_.degrees.expert * shape_.degrees.expert_tensor);
      dense += counts[ParameterClass::Divided] / shape_.degrees.tensor + counts[ParameterClass::Replicated];
    }
    const auto over = [&](CollectiveKind kind, double bytes) {
      return collective_time(kind, shard_groups(shape_, rules_.node).inner, Bytes{bytes * dense}, device_.collectives,
                             rules_.node.card) +
             collective_time(kind, expert_shard_groups(shape_, rules_.node).inner, Bytes{bytes * experts},
                             device_.collectives, rules_.node.card);
    };
    const Seconds gather = gathers ? over(CollectiveKind::AllGather, 2) : Seconds{};
    const Seconds scatter = over(CollectiveKind::ReduceScatter, rules_.software.gradient_bytes);
    forward.weights = input.weights = gather;
    weight.weights = scatter;
    backward.weights = gather + scatter;
    if (shape_.recomputes_layers() || shape_.recomputes_half())  // The recomputation hides them too.
      backward.weights = std::max(Seconds{}, backward.weights - (shape_.recomputes_half() ? 0.5 : 1) *
                                                                    kernel_time(kernels_.forward, device_).total());
  }

  const std::vector<Operation>& operations_;
  const StageShape& shape_;
  const CostRules& rules_;
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
  return {{inner, std::min(whole.local(), inner)}, {copies, std::clamp(whole.local() / std::max(1, inner), 1, copies)}};
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
    a.collectives = {.alpha = {}, .hop = 2 * link.latency, .bus = link.bandwidth};  // Each way pays each hop once.
  }
  return a;
}

LayerPasses passes_of(const std::vector<Operation>& operations, const StageShape& shape, const CostRules& rules,
                      DeviceTypeId type, const Precision& precision, double samples) {
  return PassBuilder(operations, shape, rules, type, precision, samples).passes();
}

GradientTimes gradient_times(double dense, double experts, const StageShape& shape, const CostRules& rules,
                             DeviceTypeId type) {
  const Accelerator& device = rules.accelerators[type];
  const ShardGroups groups = shard_groups(shape, rules.node), expert_groups = expert_shard_groups(shape, rules.node);
  const auto exposed = [&](CollectiveKind kind, const GroupShape& group, const GroupShape& expert_group, double bytes,
                           double expert_bytes) {
    return (1 - rules.software.data_overlap) *
           (collective_time(kind, group, Bytes{bytes * dense}, device.collectives, rules.node.card) +
            collective_time(kind, expert_group, Bytes{expert_bytes * experts}, device.collectives, rules.node.card));
  };
  const auto over = [&](CollectiveKind kind, double bytes) {
    return exposed(kind, groups.inner, expert_groups.inner, bytes, bytes);
  };
  const double gradient = rules.software.gradient_bytes;
  if (shape.sharding == StateSharding::None) return {over(CollectiveKind::AllReduce, gradient), {}};
  const Seconds copies = exposed(CollectiveKind::AllReduce, groups.outer, expert_groups.outer,
                                 gradient / shape.shards(), gradient / shape.expert_shards());
  const bool each_pass = shape.sharding == StateSharding::Weights && shape.reshard;
  const bool summed = each_pass || shape.sharding == StateSharding::Gradients;  // After each backward.
  return {(summed ? Seconds{} : over(CollectiveKind::ReduceScatter, gradient)) + copies,
          each_pass ? Seconds{} : over(CollectiveKind::AllGather, 2)};
}

Seconds optimizer_time(double dense, double experts, const StageShape& shape, const CostRules& rules,
                       DeviceTypeId type) {
  const double updated = dense / shape.shards() + experts / shape.expert_shards();
  return Bytes{updated * rules.software.optimizer_traffic + (dense + experts) * rules.software.gradient_traffic} /
         rules.accelerators[type].streaming_rate();
}

}  // namespace stagecraft
