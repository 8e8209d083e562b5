// What the passes of a layer take by the rules: its kernels, and its collectives as far as nothing hides them.

#include <algorithm>
#include <cmath>

#include "sim/cluster/phases.hpp"
#include "sim/cost/cost_rules.hpp"
#include "sim/cost/side_operations.hpp"
#include "sim/model/recomputed_outputs.hpp"

namespace stagecraft {
namespace {

class PassBuilder {
 public:
  PassBuilder(const std::vector<Operation>& operations, const StageShape& shape, const CostRules& rules,
              DeviceTypeId type, const Precision& precision, double samples, const MeasuredLayer* measured)
      : operations_(operations),
        shape_(shape),
        rules_(rules),
        type_(type),
        device_(rules.accelerators[type]),
        samples_(samples),
        measured_(measured),
        collectives_(collectives_of(operations, shape, samples, precision.activation, rules.software.dispatch_bytes)) {
    const Degrees& d = shape.degrees;
    const OperationShard shard{d.tensor, d.sequence, d.context, d.expert, d.expert_tensor};
    kernels_ = kernels_of(operations, shard, samples, rules.formats(type), rules.software);
    if (measured) std::erase_if(collectives_, is_in_measured_time);
    if (shape.overlaps_shared) find_side_times(shard, samples);
    core_ = kernel_time(core_of(kernels_.forward), device_).attention;
  }

  LayerPasses passes() const {
    PassCollectives forward = collectives(Pass::Forward), input = collectives(Pass::InputGradient);
    PassCollectives weight = collectives(Pass::WeightGradient), backward = collectives(Pass::InputGradient, true);
    add_weights(forward, input, weight, backward);
    backward.tensor += weight.tensor, backward.context += weight.context, backward.expert += weight.expert;
    backward.launches += weight.launches;
    if (measured_) return measured_passes(forward, input, weight);
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
    lists.backward = op_collectives(Pass::InputGradient, true);
    add(lists.backward, weight_collectives(Pass::InputGradient));
    add(lists.backward, lists.weight_gradient);
    return lists;
  }

 private:
  /// A backend that was measured exchanges these next to computation or inside of it: see the fields of a profile.
  static bool is_in_measured_time(const LayerCollective& c) { return c.ring || c.pass == Pass::WeightGradient; }

  /// Nothing is launched apart, and both gradients take as long in one op as in two.
  LayerPasses measured_passes(PassCollectives forward, PassCollectives input, PassCollectives weight) const {
    const auto with = [&](Seconds time, PassCollectives& collectives) {
      TimeByClass kernels;
      kernels.other = time;
      collectives.launches = 0;
      return pass_time(kernels, 0, collectives, device_, rules_.software);
    };
    LayerPasses passes{.forward = with(measured_->forward, forward),
                       .input_gradient = with(measured_->input_gradient, input),
                       .weight_gradient = with(measured_->weight_gradient, weight),
                       .backward = {},
                       .recompute = {}};
    passes.backward = passes.input_gradient + passes.weight_gradient;
    const bool whole_forward = shape_.recomputes_layers() || shape_.recomputes_all();
    const Seconds by_shapes = recompute({}).total(), kernels = kernel_time(kernels_.forward, device_).total();
    const double share = whole_forward ? 1 : kernels.value > 0 ? std::min(1.0, by_shapes / kernels) : 0;
    forward.weights = {};  // The backward gathers the weights anyway.
    PassCollectives again = whole_forward ? forward : PassCollectives{};
    passes.recompute = with(share * measured_->forward, again);
    return passes;
  }

  TimeByClass time(const std::vector<Kernel>& kernels, const PassCollectives& collectives) const {
    return pass_time(kernels, collectives, device_, rules_.software);
  }

  std::vector<Kernel> output_kernels() const {
    const Degrees& d = shape_.degrees;
    const std::vector<bool> again = recomputed_outputs(operations_);
    PassKernels kernels;
    for (std::size_t i = 0; i < operations_.size(); ++i)
      if (again[i])
        kernels.add(kernels_of(operations_[i], {d.tensor, d.sequence, d.context, d.expert, d.expert_tensor}, samples_,
                               rules_.formats(type_), rules_.software));
    return std::move(kernels.forward);
  }

  TimeByClass recompute(PassCollectives forward) const {
    forward.weights = {};  // The backward gathers the weights anyway.
    if (shape_.recomputes_attention()) return time(core_of(kernels_.forward), {});
    if (shape_.recomputes_outputs()) return time(output_kernels(), {});
    if (shape_.recomputes_half())
      return pass_time(0.5 * kernel_time(kernels_.forward, device_), launch_count(kernels_.forward),
                       {.launches = forward.launches}, device_, rules_.software);
    return shape_.recomputes_layers() || shape_.recomputes_all() ? time(kernels_.forward, forward) : TimeByClass{};
  }

  /// Time of the kernels of shared experts next to a dispatch or a combine. Where a layer has several, they divide it.
  struct SideTimes {
    Seconds forward, input_gradient, weight_gradient;
  };

  void find_side_times(const OperationShard& shard, double samples) {
    const SideOperations side = side_operations(operations_);
    const auto exchanges = [&](OperationKind kind) {
      return std::count_if(operations_.begin(), operations_.end(), [&](const Operation& o) { return o.kind == kind; });
    };
    const auto add = [&](const std::vector<int>& numbers, OperationKind kind, SideTimes& sum) {
      if (numbers.empty()) return;
      PassKernels kernels;
      for (const int i : numbers)
        kernels.add(kernels_of(operations_[i], shard, samples, rules_.formats(type_), rules_.software));
      const double share = 1.0 / static_cast<double>(exchanges(kind));
      sum = {share * kernel_time(kernels.forward, device_).total(),
             share * kernel_time(kernels.input_gradient, device_).total(),
             share * kernel_time(kernels.weight_gradient, device_).total()};
    };
    add(side.next_to_dispatch, OperationKind::Dispatch, dispatch_side_);
    add(side.next_to_combine, OperationKind::Combine, combine_side_);
  }

  /// A backward in one op has both gradients of the shared experts next to its exchanges.
  Seconds side_time(const LayerCollective& c, bool joint) const {
    if (c.kind != CollectiveKind::AllToAll) return {};
    const SideTimes& side = c.combines ? combine_side_ : dispatch_side_;
    if (c.pass == Pass::Forward) return side.forward;
    return joint ? side.input_gradient + side.weight_gradient : side.input_gradient;
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
  Seconds exposed_time(const LayerCollective& c, Seconds full, bool joint) const {
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
        return std::max(Seconds{}, (1 - software.expert_overlap) * full - side_time(c, joint));
      case Axis::Data:
        break;
    }
    return {};
  }

  PassCollectives collectives(Pass pass, bool joint = false) const {
    PassCollectives sum;
    for (const LayerCollective& c : collectives_) {
      if (c.pass != pass) continue;
      if (!is_hidden_regather(c)) ++sum.launches;
      Seconds& of_axis = c.axis == Axis::Tensor ? sum.tensor : c.axis == Axis::Context ? sum.context : sum.expert;
      of_axis += exposed_time(c, full_time(c), joint);
    }
    return sum;
  }

  OpCollectives op_collectives(Pass pass, bool joint = false) const {
    OpCollectives list;
    for (const LayerCollective& c : collectives_) {
      if (c.pass != pass) continue;
      const Seconds full = full_time(c);
      OpCollective op{.axis = c.axis, .kind = c.kind, .bytes = c.bytes, .cost = full};
      op.exposed = full.value > 0 ? exposed_time(c, full, joint) / full : 1;
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
    const GroupPart part = part_with_states(shape_);
    if (pass != Pass::WeightGradient)
      return shape_.gathers_each_pass() ? over_data(CollectiveKind::AllGather, part, rules_.gathered_bytes * dense,
                                                    rules_.gathered_bytes * experts, exposed, shape_, rules_, type_)
                                        : OpCollectives{};
    return shape_.sums_each_pass() ? over_data(CollectiveKind::ReduceScatter, part, bytes * dense, bytes * experts,
                                               exposed, shape_, rules_, type_)
                                   : OpCollectives{};
  }

  /// Divided weights are gathered before each pass; their gradients, or gradients alone, are summed after each
  /// backward.
  void add_weights(PassCollectives& forward, PassCollectives& input, PassCollectives& weight,
                   PassCollectives& backward) const {
    const bool gathers = shape_.gathers_each_pass();
    if (!shape_.sums_each_pass()) return;
    const ParameterCounts counts = parameter_counts();
    const auto over = [&](CollectiveKind kind, double bytes) {
      return rules_.ring_time(kind, shard_groups(shape_, rules_.node).inner, Bytes{bytes * counts.dense}, type_) +
             rules_.ring_time(kind, expert_shard_groups(shape_, rules_.node).inner, Bytes{bytes * counts.experts},
                              type_);
    };
    const Seconds gather = gathers ? over(CollectiveKind::AllGather, rules_.gathered_bytes) : Seconds{};
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
  double samples_;
  const MeasuredLayer* measured_;  ///< Null: kernels take what their shapes say.
  std::vector<LayerCollective> collectives_;
  PassKernels kernels_;
  Seconds core_;  ///< Attention of the forward.
  SideTimes dispatch_side_{}, combine_side_{};
};

}  // namespace

LayerPasses passes_of(const std::vector<Operation>& operations, const StageShape& shape, const CostRules& rules,
                      DeviceTypeId type, const Precision& precision, double samples, const MeasuredLayer* measured) {
  return PassBuilder(operations, shape, rules, type, precision, samples, measured).passes();
}

EachPass<OpCollectives> collectives_of(const std::vector<Operation>& operations, const StageShape& shape,
                                       const CostRules& rules, DeviceTypeId type, const Precision& precision,
                                       double samples, const MeasuredLayer* measured) {
  return PassBuilder(operations, shape, rules, type, precision, samples, measured).op_collectives();
}

}  // namespace stagecraft
