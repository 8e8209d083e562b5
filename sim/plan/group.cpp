#include "sim/plan/group.hpp"

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using namespace config;

const MapSpec& group_fields() {
  static const MapSpec spec{
      "The devices that compute one replica of a stage together.",
      {integer("tensor", 1, 1 << 20)
           .fallback("1")
           .doc("Tensor parallelism: number of devices that divide matrices, heads and words (Megatron-LM's "
                "tensor-model-parallel-size)."),
       boolean("sequence")
           .fallback("false")
           .doc("Sequence parallelism: what the tensor group does not divide, each of its devices does for a part of "
                "the "
                "rows."),
       integer("context", 1, 1 << 20)
           .fallback("1")
           .doc("Context parallelism: number of devices that divide each sequence (context-parallel-size)."),
       choice("context_type", {"p2p", "all_gather", "a2a"})
           .fallback("p2p")
           .doc("How they get the keys and values of the others. p2p: in a ring, next to attention. all_gather: all at "
                "once. a2a: each gets some heads of the whole sequence (Ulysses)."),
       integer("expert", 1, 1 << 20)
           .fallback("1")
           .doc("Expert parallelism: number of devices that divide the experts of a layer "
                "(expert-model-parallel-size). They "
                "are devices of the same stage: expert times expert_tensor divides tensor times context times "
                "replicas."),
       integer("expert_tensor", 1, 1 << 20)
           .fallback("1")
           .doc("Number of devices that divide each expert (expert-tensor-parallel-size)."),
       choice("dispatcher", {"alltoall", "per_node"})
           .fallback("alltoall")
           .doc("How rows reach their experts. alltoall: a copy for each expert. per_node: one copy for each node, "
                "which "
                "spreads it over its devices (DeepEP)."),
       choice("within", {"node", "cluster"}).fallback("cluster").doc("node: a tensor group has to be inside a node.")}};
  return spec;
}

const MapSpec& weights_fields() {
  static const MapSpec spec{
      "Weights are divided too.",
      {boolean("reshard").optional().doc(
          "Whether each pass of a layer gathers its weights and drops them again. Otherwise they are gathered once for "
          "an iteration. Default: true without a pipeline, false with one.")}};
  return spec;
}

std::vector<Variant> shardings() {
  return {
      {"none", "Each device keeps everything.", nullptr},
      {"optimizer", "The states of the optimizer are divided (ZeRO-1, Megatron-LM's distributed optimizer).", nullptr},
      {"gradients", "Gradients too (ZeRO-2): they are summed after each backward.", nullptr},
      {"weights", "Weights too (ZeRO-3, FSDP).", &weights_fields()}};
}

constexpr std::string_view kShardings[] = {"none", "optimizer", "gradients", "weights"};
constexpr std::string_view kExchanges[] = {"p2p", "all_gather", "a2a"};

/// What the operations of a model allow a group to divide.
class GroupCheck {
 public:
  GroupCheck(const PlannerInput& input, const Plan& plan) : input_(input), plan_(plan), degrees_(input.options.group) {}

  void run() {
    if (input_.costs.rules()) {
      check_operations();
      check_nodes();
      for (const Stage& stage : plan_.stages) check_stage(stage);
    } else {
      add("only costs from the shapes of operations know groups and divided states",
          "write software: plain, or another name of `stagecraft list software`", "software");
    }
    problems_.throw_if_any();
  }

 private:
  void add(std::string message, std::string help, std::string code) {
    for (const std::string& earlier : messages_)
      if (earlier == message) return;
    messages_.push_back(message);
    const char* field = degrees_.divides() ? "group" : "shard";
    problems_.add(input_.options.where(field), std::string("plan.") + field, std::move(message), std::move(help),
                  std::move(code));
  }

  void divide(double amount, int degree, const char* what, const char* field) {
    const auto whole = static_cast<std::int64_t>(amount);
    if (degree > 1 && whole % degree != 0)
      add(fmt::format("{} of the model cannot be divided by {} {}", pluralize(whole, what), field, degree),
          fmt::format("a divisor of {}", whole), "group");
  }

  void check_operations() {
    bool has_experts = false;
    for (const Layer& layer : input_.model.layers) {
      for (const Operation& op : layer.operations) {
        check_operation(op);
        has_experts = has_experts || op.division == Division::Experts;
      }
      if (layer.operations.empty() && degrees_.divides())
        add(fmt::format("layer '{}' is known by its amounts or times alone, so a group cannot divide it", layer.name),
            "a model that lists its operations", "group");
    }
    if (!has_experts && (degrees_.expert > 1 || degrees_.expert_tensor > 1))
      add("the model has no experts, but a group divides them", "write expert: 1", "group");
    if (has_experts && degrees_.tensor > 1 && !degrees_.sequence)
      add("experts get each row once, so the tensor group has to divide rows outside of products",
          "write sequence: true", "group");
  }

  void check_operation(const Operation& op) {
    const int tensor = degrees_.tensor, context = degrees_.context;
    if (op.kind == OperationKind::Attention) {
      const HeadShape heads = head_shape(op);
      divide(heads.heads, tensor, "head", "tensor");
      if (tensor % heads.key_value_heads != 0) divide(heads.key_value_heads, tensor, "key-value head", "tensor");
      // A ring gives each device an early and a late part.
      const bool ring = input_.options.exchange == ContextExchange::Ring;
      if (context > 1) divide(op.rows, ring ? 2 * context : context, "row", ring ? "2 x context =" : "context");
      if (context > 1 && input_.options.exchange == ContextExchange::AllToAll)
        divide(heads.key_value_heads, tensor * context, "key-value head", "tensor x context =");
      if (degrees_.sequence) divide(op.rows, tensor * context, "row", "tensor x context =");
    }
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
    const int tensor = degrees_.tensor, node = input_.costs.rules()->node.devices;
    if (input_.options.within_node && (tensor > node || node % tensor != 0))
      add(fmt::format("a tensor group of {} has to be inside a node, and a node has {}", tensor,
                      pluralize(node, "device")),
          fmt::format("a divisor of {}, or within: cluster", node), "group");
  }

  void check_stage(const Stage& stage) {
    const Degrees& d = stage.shape.degrees;
    const int parts = d.expert * d.expert_tensor;
    if (d.devices() % parts != 0)
      add(fmt::format(
              "expert {} x expert_tensor {} = {} does not divide the {} of stage '{}' (tensor {} x context {} x "
              "replicas {})",
              d.expert, d.expert_tensor, parts, pluralize(d.devices(), "device"), stage.name, d.tensor, d.context,
              d.replicas),
          "more replicas, or a smaller degree of experts", "group");
    const std::vector<DeviceId>& devices = stage.dense.devices;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const DeviceId leader = devices[i - i % d.group()];
      if (input_.cluster.devices[devices[i]].type == input_.cluster.devices[leader].type) continue;
      add(fmt::format("{} and {} are in one group of stage '{}', but they are of different types",
                      input_.cluster.devices[leader].name, input_.cluster.devices[devices[i]].name, stage.name),
          "list devices of one type next to each other", "group");
      return;
    }
  }

  const PlannerInput& input_;
  const Plan& plan_;
  const Degrees& degrees_;
  Problems problems_;
  std::vector<std::string> messages_;
};

}  // namespace

Field device_group_field() {
  return map("group", group_fields())
      .optional()
      .doc(
          "Devices that compute each replica together. Default: one device. Groups are consecutive devices; tensor "
          "groups are innermost, then context, then data (Megatron-LM's order tp-cp-ep-dp-pp).");
}

Field shard_field() {
  return variant("shard", "state", shardings)
      .optional()
      .doc(
          "What the devices with the same part of the parameters divide among them instead of each keeping all of it. "
          "Default: none.");
}

void read_group(const Value& v, PlanSpec& spec) {
  Degrees& g = spec.group;
  g.tensor = as_int(v.at("tensor"));
  g.sequence = as_bool(v.at("sequence")) && g.tensor > 1;
  g.context = as_int(v.at("context"));
  g.expert = as_int(v.at("expert"));
  g.expert_tensor = as_int(v.at("expert_tensor"));
  spec.within_node = v.at("within").text == "node";
  if (v.at("dispatcher").text == "per_node") spec.dispatcher = ExpertDispatch::PerNode;
  for (int i = 0; i < std::ssize(kExchanges); ++i)
    if (v.at("context_type").text == kExchanges[i]) spec.exchange = static_cast<ContextExchange>(i);
}

void read_sharding(const Value& v, PlanSpec& spec) {
  for (int i = 0; i < std::ssize(kShardings); ++i)
    if (v.at("state").text == kShardings[i]) spec.sharding = static_cast<StateSharding>(i);
  if (const Value* reshard = v.find("reshard")) spec.reshard = as_bool(*reshard);
}

std::string group_text(const PlanSpec& spec) {
  const Degrees& g = spec.group;
  std::string group;
  const auto add = [&](const char* name, int degree) {
    if (degree > 1) group += fmt::format("{}{}: {}", group.empty() ? "" : ", ", name, degree);
  };
  add("tensor", g.tensor);
  if (g.sequence) group += ", sequence: true";
  add("context", g.context);
  if (g.context > 1 && spec.exchange != ContextExchange::Ring)
    group += fmt::format(", context_type: {}", kExchanges[static_cast<int>(spec.exchange)]);
  add("expert", g.expert);
  add("expert_tensor", g.expert_tensor);
  if (g.expert > 1 && spec.dispatcher == ExpertDispatch::PerNode) group += ", dispatcher: per_node";
  std::string text = group.empty() ? "" : fmt::format(", group: {{{}}}", group);
  const std::string_view state = kShardings[static_cast<int>(spec.sharding)];
  if (spec.reshard)
    text += fmt::format(", shard: {{state: {}, reshard: {}}}", state, *spec.reshard);
  else if (spec.sharding != StateSharding::None)
    text += fmt::format(", shard: {}", state);
  return text;
}

std::string group_words(const PlanSpec& spec) {
  const Degrees& g = spec.group;
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : ", ") + word; };
  if (g.tensor > 1) add(fmt::format("tensor {}", g.tensor));
  if (g.context > 1) add(fmt::format("context {}", g.context));
  if (g.expert > 1) add(fmt::format("expert {}", g.expert));
  if (g.expert_tensor > 1) add(fmt::format("expert tensor {}", g.expert_tensor));
  if (spec.sharding != StateSharding::None) add(fmt::format("shard {}", kShardings[static_cast<int>(spec.sharding)]));
  return words;
}

void check_group(const PlannerInput& input, const Plan& plan) {
  const PlanSpec& options = input.options;
  if (!options.group.divides() && options.sharding == StateSharding::None) return;
  GroupCheck(input, plan).run();
}

}  // namespace stagecraft
