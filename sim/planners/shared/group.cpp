// The options `group` and `shard` of planners: fields, reading and text.

#include "sim/planners/shared/group.hpp"

#include <fmt/core.h>

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
       dispatcher_field(),
       boolean("shared_overlap")
           .fallback("false")
           .doc("Whether shared experts run next to the exchanges of the others: their first products next to the "
                "dispatch, their last one next to the combine (Megatron-LM's moe-shared-expert-overlap)."),
       choice("within", {"node", "cluster"}).fallback("cluster").doc("node: a tensor group has to be inside a node."),
       text("order")
           .fallback("tp-cp-ep-dp-pp")
           .doc("The order in which devices are numbered, as in Megatron-LM: between neighbors the first axis differs. "
                "tp: tensor, or expert_tensor of experts. cp: context. ep: expert. dp: replicas. pp: stages.")}};
  return spec;
}

Field shard_within_field() {
  return integer("within", 1, 1 << 20)
      .optional()
      .doc(
          "Devices that divide what is divided; each group of them has a copy (PyTorch's HSDP). Default: all devices "
          "with "
          "the same part of the parameters, replicas times context.");
}

const MapSpec& states_fields() {
  static const MapSpec spec{"States, or gradients too, are divided.", {shard_within_field()}};
  return spec;
}

const MapSpec& weights_fields() {
  static const MapSpec spec{
      "Weights are divided too.",
      {shard_within_field(),
       boolean("reshard").optional().doc("Whether each pass of a layer gathers its weights and drops them again. "
                                         "Otherwise they are gathered once for "
                                         "an iteration. Default: true without a pipeline, false with one.")}};
  return spec;
}

std::vector<Variant> shardings() {
  return {{"none", "Each device keeps everything.", nullptr},
          {"optimizer", "The states of the optimizer are divided (ZeRO-1, Megatron-LM's distributed optimizer).",
           &states_fields()},
          {"gradients", "Gradients too (ZeRO-2): they are summed after each backward.", &states_fields()},
          {"weights", "Weights too (ZeRO-3, FSDP).", &weights_fields()}};
}

constexpr std::string_view kShardings[] = {"none", "optimizer", "gradients", "weights"};
constexpr std::string_view kExchanges[] = {"p2p", "all_gather", "a2a"};
constexpr std::string_view kDispatchers[] = {"alltoall", "per_node", "allgather"};

}  // namespace

std::string_view to_text(StateSharding sharding) { return kShardings[static_cast<int>(sharding)]; }

Field dispatcher_field() {
  return choice("dispatcher", {std::begin(kDispatchers), std::end(kDispatchers)})
      .fallback("alltoall")
      .doc(
          "How rows reach their experts. alltoall: a copy for each expert. per_node: one copy for each node, "
          "which spreads it over its devices (DeepEP). allgather: all rows of the group to each of its devices, "
          "and sums back, as Megatron-LM does without moe-token-dispatcher-type.");
}

Field device_group_field() {
  return map("group", group_fields())
      .optional()
      .doc("Devices that compute each replica together. Default: one device. `order` says which devices these are.");
}

Field shard_field() {
  return variant("shard", "state", shardings)
      .optional()
      .doc(
          "What the devices with the same part of the parameters divide among them instead of each keeping all of it. "
          "Default: none.");
}

Diagnostic no_groups(const PlannerDef& def, const std::string& option, const Where& where) {
  std::vector<std::string> others;
  for (const PlannerDef* planner : planners::catalog())
    if (planner->fields->find(option)) others.emplace_back(planner->name);
  return {where, "plan." + option,
          fmt::format("the planner '{}' {}", def.name,
                      option == "group" ? "gives each replica of a stage one device, not a group of them"
                                        : "has every device keep whole states, and divides none"),
          fmt::format("planner: {}; or take {} out of the plan", join(others), option), "group"};
}

void read_group(const Value& v, PlanSpec& spec) {
  Degrees& g = spec.group;
  g.tensor = as_int(v.at("tensor"));
  g.sequence = as_bool(v.at("sequence")) && g.tensor > 1;
  g.context = as_int(v.at("context"));
  g.expert = as_int(v.at("expert"));
  g.expert_tensor = as_int(v.at("expert_tensor"));
  spec.within_node = v.at("within").text == "node";
  const Value& order = v.at("order");
  const std::optional<RankOrder> read = parse_rank_order(order.text);
  if (!read)
    throw InputError({{order.where, "group.order", fmt::format("'{}' is no order of ranks", order.text),
                       "tp, cp, ep, dp and pp, each once, with - between them", "order"}});
  spec.order = *read;
  for (int i = 0; i < std::ssize(kDispatchers); ++i)
    if (v.at("dispatcher").text == kDispatchers[i]) spec.dispatcher = static_cast<ExpertDispatch>(i);
  spec.overlaps_shared = as_bool(v.at("shared_overlap"));
  for (int i = 0; i < std::ssize(kExchanges); ++i)
    if (v.at("context_type").text == kExchanges[i]) spec.exchange = static_cast<ContextExchange>(i);
}

void read_sharding(const Value& v, PlanSpec& spec) {
  for (int i = 0; i < std::ssize(kShardings); ++i)
    if (v.at("state").text == kShardings[i]) spec.sharding = static_cast<StateSharding>(i);
  if (const Value* reshard = v.find("reshard")) spec.reshard = as_bool(*reshard);
  if (const Value* within = v.find("within")) spec.shard_within = as_int(*within);
}

void set_shard_within(StageShape& shape, int devices) {
  const bool cuts = shape.sharding != StateSharding::None && devices != shape.degrees.replicas * shape.degrees.context;
  shape.shard_within = cuts ? devices : 0;
}

std::string group_text(const PlanSpec& spec) {
  const Degrees& g = spec.group;
  std::string group;
  const auto add = [&](const char* name, std::string_view value) {
    group += fmt::format("{}{}: {}", group.empty() ? "" : ", ", name, value);
  };
  const auto add_degree = [&](const char* name, int degree) {
    if (degree > 1) add(name, std::to_string(degree));
  };
  add_degree("tensor", g.tensor);
  if (g.sequence) add("sequence", "true");
  add_degree("context", g.context);
  if (spec.exchange != ContextExchange::Ring) add("context_type", kExchanges[static_cast<int>(spec.exchange)]);
  add_degree("expert", g.expert);
  add_degree("expert_tensor", g.expert_tensor);
  if (spec.dispatcher != ExpertDispatch::AllToAll) add("dispatcher", kDispatchers[static_cast<int>(spec.dispatcher)]);
  if (spec.overlaps_shared) add("shared_overlap", "true");
  if (spec.within_node) add("within", "node");
  if (spec.order.axes != RankOrder{}.axes) add("order", to_text(spec.order));
  std::string text = group.empty() ? "" : fmt::format(", group: {{{}}}", group);
  const std::string_view state = to_text(spec.sharding);
  const bool within = spec.sharding != StateSharding::None && spec.shard_within > 0;
  if (spec.reshard || within)
    text +=
        fmt::format(", shard: {{state: {}{}{}}}", state, within ? fmt::format(", within: {}", spec.shard_within) : "",
                    spec.reshard ? fmt::format(", reshard: {}", *spec.reshard) : "");
  else if (spec.sharding != StateSharding::None)
    text += fmt::format(", shard: {}", state);
  return text;
}

std::string group_words(const PlanSpec& spec) {
  const Degrees& g = spec.group;
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : ", ") + word; };
  if (g.tensor > 1) add(fmt::format("TP {}", g.tensor));
  if (g.context > 1) add(fmt::format("CP {}", g.context));
  if (g.expert > 1) add(fmt::format("EP {}", g.expert));
  if (g.expert > 1 && spec.dispatcher == ExpertDispatch::PerNode) add("per-node dispatch");
  if (g.expert > 1 && spec.dispatcher == ExpertDispatch::AllGather) add("all-gather dispatch");
  if (g.expert_tensor > 1) add(fmt::format("ETP {}", g.expert_tensor));
  if (spec.sharding != StateSharding::None) add(fmt::format("ZeRO-{}", static_cast<int>(spec.sharding)));
  return words;
}

}  // namespace stagecraft
