// Says which of the arrays that a layer keeps are inputs of the modules that Megatron-LM offloads one by one.

#include "sim/cost/offloaded_arrays.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

using enum OperationKind;

bool is_layer_norm(const Operation& op) { return op.kind == LayerNorm || op.kind == RmsNorm; }

/// The module that reads an array first; nothing for other arrays.
std::string_view reader_of(const KeptArray& array, const std::vector<Operation>& operations) {
  if (array.probabilities) return {};
  const Operation& reader = operations[array.operation];
  const Operation* const producer = array.producer < 0 ? nullptr : &operations[array.producer];
  const bool follows_first_norm = producer && is_layer_norm(*producer) && producer->inputs.front() < 0;
  if (is_layer_norm(reader)) return !producer ? "attn_norm" : producer->kind == Add ? "mlp_norm" : "";
  if (producer && producer->kind == Attention) return "attn_proj";
  if (reader.kind == Attention) return "core_attn";
  if (reader.kind == Linear) return follows_first_norm ? "qkv_linear" : "";
  if (reader.division != Division::Experts || !producer) return {};
  if (reader.kind == GroupedLinear) return producer->kind == Dispatch ? "expert_fc1" : "fused_group_mlp";
  return producer->kind == GroupedLinear && reader.kind != Combine ? "moe_act" : "";
}

}  // namespace

const std::vector<std::string>& offload_modules() {
  static const std::vector<std::string> names{"attn_norm", "qkv_linear", "core_attn", "attn_proj",
                                              "mlp_norm",  "expert_fc1", "moe_act",   "fused_group_mlp"};
  return names;
}

bool is_module_of_experts(std::string_view name) {
  return name == "expert_fc1" || name == "moe_act" || name == "fused_group_mlp";
}

bool is_input_of(const std::vector<std::string>& modules, const KeptArray& array,
                 const std::vector<Operation>& operations) {
  const std::string_view module = reader_of(array, operations);
  const auto has = [&](std::string_view name) {
    return std::find(modules.begin(), modules.end(), name) != modules.end();
  };
  return !module.empty() && (has(module) || (is_module_of_experts(module) && has("fused_group_mlp")));
}

}  // namespace stagecraft
