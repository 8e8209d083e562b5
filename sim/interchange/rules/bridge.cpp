// What Megatron-Bridge 0.7 demands beyond Megatron-LM (067f987, 2026-08-22): ConfigContainer.validate of
// training/config.py and training/comm_overlap.py, restated. What a recipe sets itself is not known here. Also finds
// the rules that overrides of a recipe break, for `check --framework bridge`.

#include "sim/interchange/rules/bridge.hpp"

#include <map>

#include "sim/core/text.hpp"
#include "sim/interchange/bridge_command.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kValidates = "when it validates its configuration";

constexpr FrameworkRule kBridgeRules[] = {
    {"packing", "packing in a batch: micro-batch > 1; offline packing: micro-batch = 1; not both", "ValueError",
     kValidates},
    {"fsdp-order", "Megatron-FSDP: no order tp-pp-dp", "AssertionError", kValidates},
    {"fsdp-checkpoints", "Megatron-FSDP that saves or loads has checkpoints fsdp_dtensor", "AssertionError",
     kValidates},
    {"fsdp-alone", "Megatron-FSDP or FSDP2", "ValueError", kValidates},
    {"gather-buffer", "weights in mxfp8 are gathered in the buffer of gradients", "AssertionError", kValidates},
    {"tensor-overlap", "overlap of tensor collectives: T > 1 and sequence parallelism, else it is off", "warning",
     "when it sets up overlap"},
    {"deepep-devices", "GB200 and GB300 have HybridEP, others DeepEP", "ValueError", kValidates},
};

/// Values in small letters; of several the last counts.
std::map<std::string, std::string> overrides_of(const std::string& text) {
  std::map<std::string, std::string> overrides;
  const BridgeCommand command = read_bridge_command(text, "");
  for (const BridgeOverride& one : command.overrides) overrides[one.key] = lower_case(one.value);
  return overrides;
}

}  // namespace

const FrameworkRules& bridge_rules() {
  static constexpr FrameworkRules rules{"bridge", "Megatron-Bridge 0.7", kBridgeRules};
  return rules;
}

std::vector<Diagnostic> broken_bridge_rules(const std::string& text) {
  const std::map<std::string, std::string> overrides = overrides_of(text);
  const auto value = [&](const char* key) {
    const auto entry = overrides.find(key);
    return entry == overrides.end() ? std::string() : entry->second;
  };
  std::vector<Diagnostic> broken;
  const auto require = [&](bool holds, const char* rule, const char* message, const char* help) {
    if (!holds) broken.push_back({{}, "", message, help, rule});
  };
  const std::string batch = value("train.micro_batch_size"), tensor = value("model.tensor_model_parallel_size");
  require(value("dataset.enable_in_batch_packing") != "true" || batch != "1", "packing",
          "a batch of one sample has nothing to pack", "train.micro_batch_size=2");
  require(value("dataset.enable_offline_packing") != "true" || batch.empty() || batch == "1", "packing",
          "samples are packed already", "train.micro_batch_size=1");
  require(
      value("comm_overlap.tp_comm_overlap") != "true" || (tensor != "1" && value("model.sequence_parallel") != "false"),
      "tensor-overlap", "it is switched off", "leave it out");
  require(value("dataset.enable_in_batch_packing") != "true" || value("dataset.enable_offline_packing") != "true",
          "packing", "samples are packed twice", "leave one of them out");
  const bool has_fsdp = value("ddp.use_megatron_fsdp") == "true" || value("dist.use_megatron_fsdp") == "true";
  const std::string checkpoints = value("checkpoint.ckpt_format");
  require(!has_fsdp || value("dist.use_tp_pp_dp_mapping") != "true", "fsdp-order",
          "Megatron-FSDP has no order tp-pp-dp", "leave dist.use_tp_pp_dp_mapping out");
  require(!has_fsdp || value("dist.use_torch_fsdp2") != "true", "fsdp-alone", "weights are divided by both",
          "leave one of them out");
  require(!has_fsdp || (value("checkpoint.save").empty() && value("checkpoint.load").empty()) || checkpoints.empty() ||
              checkpoints == "fsdp_dtensor",
          "fsdp-checkpoints", "Megatron-FSDP writes no such checkpoints", "checkpoint.ckpt_format=fsdp_dtensor");
  require(has_fsdp || value("mixed_precision.reuse_grad_buf_for_mxfp8_param_ag") != "false" ||
              value("mixed_precision.fp8_param_gather") != "true",
          "gather-buffer", "the buffer of gradients is not used again",
          "mixed_precision.reuse_grad_buf_for_mxfp8_param_ag=true");
  const bool has_hybrid = text.find("gb200") != std::string::npos || text.find("gb300") != std::string::npos;
  require(!has_hybrid || value("model.moe_flex_dispatcher_backend") != "deepep", "deepep-devices",
          "these devices have no DeepEP", "model.moe_flex_dispatcher_backend=hybridep");
  return broken;
}

}  // namespace stagecraft
