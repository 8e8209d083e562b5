// Checks the options `group` and `shard` of a plan: what a group cannot divide in the model, groups across nodes or
// types of devices, the order of ranks, and stages that share devices.

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/core/text.hpp"
#include "sim/plan/stage_names.hpp"
#include "sim/planners/shared/group.hpp"

namespace stagecraft {
namespace {

using config::Problems;

/// What the operations of a model allow a group to divide.
class GroupCheck {
 public:
  /// `options` divide these stages; `path` is where they are written.
  GroupCheck(const PlannerInput& input, const PlanSpec& options, std::vector<const Stage*> stages, std::string path)
      : input_(input), options_(options), stages_(std::move(stages)), path_(std::move(path)), degrees_(options.group) {}

  void run() {
    check_order();
    if (!degrees_.divides() && options_.sharding == StateSharding::None) return problems_.throw_if_any();
    if (input_.costs.rules().software.prices) {
      check_operations();
      check_nodes();
      for (const Stage* stage : stages_) check_stage(*stage);
      for (const StageProblem& p : of_stages_) add(p.before + stages_text(p.stages) + p.after, p.help, p.code);
    } else {
      add("only costs from the shapes of operations know groups and divided states",
          "write software: plain, or another name of `stagecraft list software`", "software");
    }
    problems_.throw_if_any();
  }

 private:
  /// A problem that several stages may have alike; the name of the stage stands between `before` and `after`.
  struct StageProblem {
    std::string before, after, help, code;
    std::vector<std::string> stages;

    bool is_like(const StageProblem& p) const {
      return before == p.before && after == p.after && help == p.help && code == p.code;
    }
  };

  void add(const Stage& stage, StageProblem problem) {
    auto like = std::find_if(of_stages_.begin(), of_stages_.end(), [&](const auto& p) { return p.is_like(problem); });
    if (like == of_stages_.end()) like = of_stages_.insert(like, std::move(problem));
    like->stages.push_back(stage.name);
  }

  void add(std::string message, std::string help, std::string code) {
    for (const std::string& earlier : messages_)
      if (earlier == message) return;
    messages_.push_back(message);
    const char* field = degrees_.divides() || code == "order" ? "group" : "shard";
    problems_.add(options_.where(field), path_ + "." + field, std::move(message), std::move(help), std::move(code));
  }

  /// Layers of these stages; all layers before they are shared out.
  std::vector<LayerId> layers() const {
    std::vector<LayerId> ids;
    for (const Stage* stage : stages_) ids.insert(ids.end(), stage->shape.layers.begin(), stage->shape.layers.end());
    if (ids.empty())
      for (const LayerId id : input_.model.layers.ids()) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  /// Tells of the first amount alone that a degree does not divide: of heads, columns and rows, one says enough.
  void divide(double amount, int degree, const char* what, const char* field, std::string help = {}) {
    const auto whole = static_cast<std::int64_t>(amount);
    if (degree < 2 || whole % degree == 0 || !undivided_.insert(field).second) return;
    if (help.empty()) help = fmt::format("a divisor of {}", whole);
    add(fmt::format("{} of the model cannot be divided by {} {}", pluralize(whole, what), field, degree),
        std::move(help), "group");
  }

  void check_operations() {
    bool has_experts = false;
    for (const LayerId id : layers())
      for (const Operation& op : input_.model.layers[id].operations)
        if (op.kind == OperationKind::Attention) check_attention(op);
    for (const LayerId id : layers()) {
      const Layer& layer = input_.model.layers[id];
      for (const Operation& op : layer.operations) {
        check_operation(op);
        has_experts = has_experts || op.division == Division::Experts;
      }
      if (!layer.has_shapes() && degrees_.divides())
        add(fmt::format("layer '{}' is known by its amounts or times alone, so a group cannot divide it", layer.name),
            "a model that lists its operations", "group");
    }
    if (!has_experts && degrees_.expert * degrees_.expert_tensor > 1) {
      add("the model has no experts, but a group divides them", "write expert: 1", "group");
      undivided_.insert("expert");
    }
    if (has_experts && degrees_.tensor > 1 && !degrees_.sequence)
      add("experts get each row once, so the tensor group has to divide rows outside of products",
          "write sequence: true", "group");
  }

  void check_attention(const Operation& op) {
    const int tensor = degrees_.tensor, context = degrees_.context;
    const HeadShape heads = head_shape(op);
    divide(heads.heads, tensor, "head", "tensor");
    if (tensor % heads.key_value_heads != 0) divide(heads.key_value_heads, tensor, "key-value head", "tensor");
    const auto sequence_of = [](int parts) { return fmt::format("a sequence that is a multiple of {}", parts); };
    // A ring gives each device an early and a late part.
    const bool ring = options_.exchange == ContextExchange::Ring;
    const int parts = ring ? 2 * context : context;
    if (context > 1) divide(op.rows, parts, "row", ring ? "2 x context =" : "context", sequence_of(parts));
    if (context > 1 && options_.exchange == ContextExchange::AllToAll)
      divide(heads.key_value_heads, tensor * context, "key-value head", "tensor x context =",
             fmt::format("context_type: p2p or all_gather, which divide no heads; with a2a, tensor x context has to be "
                         "a divisor of {}",
                         heads.key_value_heads));
    if (degrees_.sequence && undivided_.empty())
      divide(op.rows, tensor * context, "row", "tensor x context =", sequence_of(tensor * context));
  }

  void check_operation(const Operation& op) {
    const int tensor = degrees_.tensor;
    if (op.kind == OperationKind::Linear && op.division == Division::Column)
      divide(op.columns, tensor, "column", "tensor");
    if (op.kind == OperationKind::Linear && op.division == Division::Row) divide(op.inner, tensor, "column", "tensor");
    if (op.kind == OperationKind::GroupedLinear) {
      divide(op.experts, degrees_.expert, "expert", "expert");
      divide(op.within_expert == Division::Row ? op.inner : op.columns, degrees_.expert_tensor, "column of an expert",
             "expert_tensor");
    }
  }

  void check_nodes() {
    if (!options_.within_node || stages_.empty()) return;
    const Degrees& d = stages_.front()->shape.degrees;
    const int node = input_.costs.rules().node.devices, stride = d.order.stride(RankAxis::Tensor, d.dense_sizes());
    const int span = stride * d.tensor;
    if (span > node || node % span != 0)
      add(fmt::format("a tensor group of {}{} has to be inside a node, and a node has {}", d.tensor,
                      stride == 1 ? "" : fmt::format(", whose members are {} devices apart,", stride),
                      pluralize(node, "device")),
          fmt::format("{}, or within: cluster",
                      stride == 1 ? fmt::format("a divisor of {}", node) : "tp earlier in order"),
          "group");
  }

  /// An axis that the order leaves out has one rank. Stages of dense layers and of experts are the same devices, so
  /// both numberings have to reach the next pipeline rank after equally many devices (Megatron-LM demands the same).
  void check_order() {
    for (const Stage* stage : stages_) {
      const Degrees& d = stage->shape.degrees;
      const RankSizes dense = d.dense_sizes(), experts = d.expert_sizes();
      const RankOrder& order = d.order;
      const int parts = d.expert * d.expert_tensor;
      for (std::size_t i = order.written; i < order.axes.size(); ++i) {
        const RankAxis axis = order.axes[i];
        const int size = parts > 1 ? std::max(dense[axis], experts[axis]) : dense[axis];
        if (size > 1)
          add(fmt::format("the order leaves out {}, which has {}", to_text(axis), pluralize(size, "rank")),
              fmt::format("order: {}", to_text(order)), "order");
      }
      if (parts < 2 || d.devices() % parts != 0) continue;
      const int dense_stride = order.stride(RankAxis::Pipeline, dense);
      const int expert_stride = order.stride(RankAxis::Pipeline, experts);
      if (d.pipeline > 1 && dense_stride != expert_stride)
        add(fmt::format("with order {} the next stage is {} further for dense layers, and {} for experts",
                        to_text(order), pluralize(dense_stride, "device"), pluralize(expert_stride, "device")),
            "an order that ends in pp, or expert_tensor: " + fmt::format("{}", d.tensor), "order");
    }
  }

  void check_stage(const Stage& stage) {
    const Degrees& d = stage.shape.degrees;
    const int parts = d.expert * d.expert_tensor;
    if (d.devices() % parts != 0 && !undivided_.contains("expert"))
      add(stage, {fmt::format("expert {} x expert_tensor {} = {} does not divide the {} of ", d.expert, d.expert_tensor,
                              parts, pluralize(d.devices(), "device")),
                  fmt::format(" (tensor {} x context {} x replicas {})", d.tensor, d.context, d.replicas),
                  "more replicas, or a smaller degree of experts",
                  "group",
                  {}});
    check_shards(stage);
    const std::vector<DeviceId>& devices = stage.all_devices();
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const DeviceId leader = devices[i - i % d.group()];
      if (input_.cluster.devices[devices[i]].type == input_.cluster.devices[leader].type) continue;
      add(fmt::format("{} and {} are in one group of stage '{}', but they are of different types",
                      input_.cluster.devices[leader].name, input_.cluster.devices[devices[i]].name, stage.name),
          "list devices of one type next to each other", "group");
      return;
    }
  }

  void check_shards(const Stage& stage) {
    const Degrees& d = stage.shape.degrees;
    const int within = stage.shape.shard_within, holders = d.replicas * d.context;
    if (within == 0) return;
    if (within > holders || holders % within != 0)
      return add(stage, {fmt::format("shard within {} does not divide the {} with the same part of the parameters of ",
                                     within, pluralize(holders, "device")),
                         fmt::format(" (replicas {} x context {})", d.replicas, d.context),
                         fmt::format("a divisor of {}", holders),
                         "shard",
                         {}});
    const int copies = stage.shape.shard_copies();
    if (d.expert * d.expert_tensor > 1 && d.expert_replicas() % copies != 0)
      add(stage, {fmt::format("shard within {} makes {} copies of the states, which do not divide the {} with the same "
                              "experts of ",
                              within, copies, pluralize(d.expert_replicas(), "device")),
                  {},
                  "a larger group, or no within",
                  "shard",
                  {}});
  }

  const PlannerInput& input_;
  const PlanSpec& options_;
  std::vector<const Stage*> stages_;
  std::string path_;
  const Degrees& degrees_;
  Problems problems_;
  std::vector<std::string> messages_;
  std::vector<StageProblem> of_stages_;
  std::set<std::string> undivided_;  ///< Degrees that do not divide what they should.
};

/// The first device of a group stands for the others, so a device is in one group, whatever stages it has.
void check_shared_devices(const PlannerInput& input, const Plan& plan) {
  IdVector<DeviceId, std::pair<const Stage*, DeviceId>> group_of(input.cluster.devices.size(), {nullptr, {}});
  for (const Stage& stage : plan.stages) {
    const std::vector<DeviceId>& devices = stage.all_devices();
    const int size = stage.shape.degrees.group();
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const DeviceId leader = devices[i - i % size];
      auto& [other, other_leader] = group_of[devices[i]];
      if (other && (other_leader != leader || other->shape.degrees.group() != size))
        throw InputError({{input.options.where("stages"), "plan.stages",
                           fmt::format("{} is in different groups of stages '{}' and '{}'",
                                       input.cluster.devices[devices[i]].name, other->name, stage.name),
                           "stages that share devices have equal groups", "group"}});
      other = &stage, other_leader = leader;
    }
  }
}

}  // namespace

void check_group(const PlannerInput& input, const Plan& plan) {
  std::vector<const Stage*> stages;
  for (const Stage& stage : plan.stages)
    if (!stage.divides_itself) stages.push_back(&stage);
  if (!stages.empty()) GroupCheck(input, input.options, std::move(stages), "plan").run();
  check_shared_devices(input, plan);
}

void check_own_group(const PlannerInput& input, const Stage& stage, const PlanSpec& division, const std::string& path) {
  GroupCheck(input, division, {&stage}, path).run();
}

}  // namespace stagecraft
