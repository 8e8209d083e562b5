// The keys of Megatron-Bridge 0.7's configuration (067f987, 2026-08-22), and the options of Megatron-LM 0.20 that they
// stand for. A key that is none of these is unknown.

#include "sim/interchange/bridge_keys.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// Options of the sections `model`, `train` and so on have Megatron-LM's names with "_" for "-", but for these.
struct Renamed {
  const char *key, *option;
  bool is_inverted = false;  ///< The option is there where the key is false.
};
constexpr Renamed kRenamed[] = {
    {"model.seq_length", "seq-length"},
    {"dataset.sequence_length", "seq-length"},
    {"dataset.seq_length", "seq-length"},
    {"model.virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
    {"model.microbatch_group_size_per_vp_stage", "microbatch-group-size-per-virtual-pipeline-stage"},
    {"model.num_layers_in_first_pipeline_stage", "decoder-first-pipeline-num-layers"},
    {"model.num_layers_in_last_pipeline_stage", "decoder-last-pipeline-num-layers"},
    {"model.num_moe_experts", "num-experts"},
    {"model.gated_linear_unit", "swiglu"},
    {"model.add_bias_linear", "disable-bias-linear", true},
    {"model.share_embeddings_and_output_weights", "untie-embeddings-and-output-weights", true},
    {"model.gradient_accumulation_fusion", "no-gradient-accumulation-fusion", true},
    {"model.apply_rope_fusion", "no-rope-fusion", true},
    {"model.bias_dropout_fusion", "no-bias-dropout-fusion", true},
    {"model.masked_softmax_fusion", "no-masked-softmax-fusion", true},
    {"model.persist_layer_norm", "no-persist-layer-norm", true},
    {"model.overlap_p2p_comm", "no-overlap-p2p-communication", true},
    {"model.overlap_p2p_comm_warmup_flush", "overlap-p2p-communication-warmup-flush"},
    {"comm_overlap.overlap_p2p_comm", "no-overlap-p2p-communication", true},
    {"comm_overlap.align_param_gather", "no-align-param-gather", true},
    {"comm_overlap.bucket_size", "ddp-bucket-size"},
    {"ddp.align_param_gather", "no-align-param-gather", true},
    {"dist.use_tp_pp_dp_mapping", "use-tp-pp-dp-mapping"},
    {"ddp.bucket_size", "ddp-bucket-size"},
    {"ddp.num_buckets", "ddp-num-buckets"},
    {"ddp.nccl_ub", "use-nccl-ub"},
    {"ddp.grad_reduce_in_fp32", "grad-reduce-in-bf16", true},
    {"mixed_precision.grad_reduce_in_fp32", "grad-reduce-in-bf16", true},
};

/// Options that a plan decides.
constexpr BridgeNames kPlanned[] = {
    {MegatronUse::Field, "model", R"(
tensor-model-parallel-size sequence-parallel pipeline-model-parallel-size num-virtual-stages-per-pipeline-rank
pipeline-model-parallel-layout account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split
microbatch-group-size-per-virtual-pipeline-stage context-parallel-size cp-comm-type expert-model-parallel-size
expert-tensor-parallel-size moe-token-dispatcher-type moe-flex-dispatcher-backend moe-shared-expert-overlap
recompute-granularity recompute-method recompute-num-layers recompute-modules cpu-offloading-num-layers
fine-grained-activation-offloading offload-modules activation-offload-fraction
delta-offload-bytes-across-pp-ranks seq-length)"},
    {MegatronUse::Field, "dataset", "seq-length"},
    {MegatronUse::Field, "train", "micro-batch-size global-batch-size"},
    {MegatronUse::Field, "dist", "use-tp-pp-dp-mapping"},
    {MegatronUse::Field, "ddp", R"(
use-distributed-optimizer use-megatron-fsdp data-parallel-sharding-strategy num-distributed-optimizer-instances
grad-reduce-in-bf16)"},
    {MegatronUse::Field, "optimizer", R"(
use-distributed-optimizer optimizer-cpu-offload optimizer-offload-fraction overlap-cpu-optimizer-d2h-h2d
use-precision-aware-optimizer)"},
    {MegatronUse::Field, "comm_overlap", R"(
tp-comm-overlap overlap-grad-reduce overlap-param-gather overlap-moe-expert-parallel-comm delay-wgrad-compute
no-overlap-p2p-communication)"},
};

constexpr std::string_view kOverruled[] = {"overlap-grad-reduce", "overlap-param-gather"};

/// Keys that no option of Megatron-LM stands for, in the order of their sections.
constexpr BridgeNames kOtherKeys[] = {
    {MegatronUse::Time, "model", R"(
activation_func_fp8_input_store batch_p2p_comm batch_p2p_sync bias_activation_fusion
cuda_graph_use_single_mempool deallocate_pipeline_outputs dense_grouped_gemm fp8_dot_product_attention
fp8_multi_head_attention fp8_wgrad fused_single_qkv_rope moe_router_topk_limited_devices
scatter_embedding_sequence_parallel tp_comm_atomic_ag tp_comm_atomic_rs tp_comm_bulk_dgrad tp_comm_bulk_wgrad
tp_comm_overlap_ag tp_comm_overlap_cfg tp_comm_overlap_disable_fc1 tp_comm_overlap_disable_qkv
tp_comm_overlap_rs tp_comm_split_ag tp_comm_split_rs tp_only_amax_red transformer_layer_spec use_kitchen
use_mamba_mem_eff_path use_transformer_engine_full_layer_spec variable_seq_lengths)"},
    {MegatronUse::Memory, "model", R"(
cpu_offloading_double_buffering cuda_graph_retain_backward_graph disable_parameter_transpose_cache
memory_efficient_layer_norm)"},
    {MegatronUse::TimeAndMemory, "model", R"(
activation_func autocast_dtype cpu_offloading cpu_offloading_weights enable_autocast expert_gtp_weight_remat_size
fp4 fp4_param fp8 fp8_param gtp_weight_remat_size heterogeneous_block_specs logit_dtype
num_microbatches_with_partial_activation_checkpoints params_dtype pipeline_dtype quant_recipe)"},
    {MegatronUse::WithoutUse, "model", R"(
barrier_with_L1_time clone_scatter_output_in_embedding cpu_offloading_activations dsa_indexer_rotate_activation
dsa_indexer_scoring_relu embedding_init_method hetereogenous_dist_checkpoint hf_model_id hf_model_revision
inference_sampling_seed init_method init_model_with_meta_device layernorm_epsilon layernorm_zero_centered_gamma
mtp_enabled output_layer_init_method parallel_output perform_initialization restore_modelopt_state rope_scaling
rope_scaling_factor seq_len_interpolation_factor should_pad_vocab softmax_scale use_arbitrary_attention_mask
use_cpu_initialization use_te_rng_tracker yarn_beta_fast yarn_beta_slow yarn_correction_range_round_to_int
yarn_mscale yarn_mscale_all_dim yarn_original_max_position_embeddings yarn_rotary_scaling_factor)"},
    {MegatronUse::TimeAndMemory, "dist", "use_megatron_fsdp use_torch_fsdp2"},
    {MegatronUse::Time, "comm_overlap", "batch_p2p_comm data_parallel_size tp_comm_overlap_cfg"},
    {MegatronUse::Time, "ddp", R"(
fsdp_all_gather_in_start_param_sync gradient_reduce_div_fusion megatron_fsdp_cuda_graph_mode
megatron_fsdp_use_decoupled_grad pad_buckets_for_high_nccl_busbw param_name_patterns_for_fp32_local_accumulation
reduce_scatter_with_fp32_accumulation)"},
    {MegatronUse::Memory, "ddp", "fp8_param_gather keep_fp8_transpose_cache"},
    {MegatronUse::WithoutUse, "ddp", "average_in_collective check_for_nan_in_grad"},
    {MegatronUse::Time, "optimizer", "use_layer_wise_distributed_optimizer"},
    {MegatronUse::Memory, "optimizer", "params_dtype pin_cpu_grads pin_cpu_params store_param_remainders"},
    {MegatronUse::WithoutUse, "optimizer", R"(
adaptive_muon_beta2 adaptive_muon_eps adaptive_muon_moment2_method barrier_with_L1_time decoupled_weight_decay
grad_norm_skip_threshold muon_split_qkv soap_shampoo_beta soap_use_kl_shampoo timers)"},
    {MegatronUse::WithoutUse, "train",
     "check_optimizer_step_success manual_gc_eval num_epochs skip_sync_grad_norm_across_mp"},
    {MegatronUse::TimeAndMemory, "dataset", "enable_in_batch_packing enable_offline_packing offline_packing_specs"},
    {MegatronUse::WithoutUse, "dataset", R"(
add_extra_token_to_sequence blend blend_per_split create_attention_mask data_sharding dataset_kwargs
dataset_name dataset_root do_test do_validation drop_last_partial_validation_sequence max_train_samples
memmap_workers mmap_bin_files object_storage_config path_to_cache persistent_workers pin_memory random_seed
rewrite seed skip_getting_attention_mask_from_dataset)"},
    {MegatronUse::Time, "mixed_precision", R"(
fp8_dot_product_attention fp8_multi_head_attention fp8_recipe fp8_wgrad num_layers_at_end_in_bf16
num_layers_at_start_in_bf16 first_last_layers_bf16)"},
    {MegatronUse::Memory, "mixed_precision", "reuse_grad_buf_for_mxfp8_param_ag"},
    {MegatronUse::TimeAndMemory, "mixed_precision", R"(
autocast_dtype autocast_enabled bf16 fp16 fp32 fp4 fp4_param fp4_param_gather fp4_recipe fp8 fp8_param
fp8_param_gather params_dtype pipeline_dtype)"},
    {MegatronUse::WithoutUse, "mixed_precision", R"(
fp8_amax_compute_algo fp8_amax_history_len fp8_margin hysteresis initial_loss_scale loss_scale loss_scale_window
min_loss_scale)"},
};

/// Sections whose other keys change neither the time nor the memory of an iteration.
constexpr std::string_view kSectionsWithoutUse[] = {"logger",
                                                    "checkpoint",
                                                    "scheduler",
                                                    "rng",
                                                    "tokenizer",
                                                    "dist",
                                                    "profiling",
                                                    "validation",
                                                    "straggler",
                                                    "nvrx_straggler",
                                                    "ft",
                                                    "rerun_state_machine",
                                                    "tensor_inspect",
                                                    "optimizer_config_override_provider",
                                                    "env_vars",
                                                    "inprocess_restart"};

}  // namespace

BridgeKey bridge_key(const std::string& key) {
  BridgeKey read{.section = key.substr(0, key.find('.')), .option = {}};
  read.option = key.substr(std::min(read.section.size() + 1, key.size()));
  if (read.option.empty()) read.option = key;
  std::replace(read.option.begin(), read.option.end(), '_', '-');
  for (const Renamed& renamed : kRenamed)
    if (key == renamed.key)
      read.option = renamed.option, read.is_inverted = renamed.is_inverted, read.is_renamed = true;
  return read;
}

std::optional<MegatronUse> use_of_bridge_key(const BridgeKey& read, const std::string& key) {
  if (read.is_renamed) return {};
  for (const BridgeNames& list : kOtherKeys)
    for (const std::string& name : list.words())
      if (key == fmt::format("{}.{}", list.section, name)) return list.use;
  const bool is_without_use = std::find(std::begin(kSectionsWithoutUse), std::end(kSectionsWithoutUse), read.section) !=
                              std::end(kSectionsWithoutUse);
  return is_without_use ? std::optional(MegatronUse::WithoutUse) : std::nullopt;
}

std::string bridge_key_of(const std::string& section, const std::string& option) {
  std::string key = section + "." + option;
  std::replace(key.begin(), key.end(), '-', '_');
  for (const Renamed& renamed : kRenamed)
    if (renamed.option == option && std::string_view(renamed.key).starts_with(section + ".")) key = renamed.key;
  return key;
}

std::vector<std::string> BridgeNames::words() const {
  std::vector<std::string> list;
  for (const std::string& line : split(names, '\n'))
    for (std::string& word : split(line, ' '))
      if (!word.empty()) list.push_back(std::move(word));
  return list;
}

std::span<const BridgeNames> planned_options() { return kPlanned; }

std::string section_of(const std::string& option) {
  for (const BridgeNames& list : kPlanned)
    for (const std::string& one : list.words())
      if (one == option) return std::string(list.section);
  return "model";
}

std::string section_for(const std::string& option, const std::string& section) {
  bool is_known = section == "model" || section == "optimizer" || section == "train" || section == "dataset";
  for (const BridgeNames& list : kPlanned) {
    const std::vector<std::string> words = list.words();
    if (std::find(words.begin(), words.end(), option) == words.end()) continue;
    if (list.section == section) return section;
    is_known = false;
  }
  return is_known ? section : section_of(option);
}

bool is_overruled(const BridgeKey& key) {
  return key.section == "ddp" &&
         std::find(std::begin(kOverruled), std::end(kOverruled), key.option) != std::end(kOverruled);
}

std::string suggest_bridge_key(const BridgeKey& read, const std::string& key) {
  std::vector<std::string> keys;
  for (const Renamed& renamed : kRenamed) keys.emplace_back(renamed.key);
  for (const BridgeNames& list : kOtherKeys)
    for (const std::string& name : list.words()) keys.push_back(fmt::format("{}.{}", list.section, name));
  for (const BridgeNames& list : kPlanned)
    for (const std::string& option : list.words()) keys.push_back(bridge_key_of(std::string(list.section), option));
  if (const std::optional<std::string> near = closest(key, keys)) return fmt::format("did you mean '{}'?", *near);
  std::string nearest = suggest_megatron_option(read.option);
  for (std::size_t at; (at = nearest.find("--")) != std::string::npos;) nearest.replace(at, 2, read.section + ".");
  for (std::size_t at = nearest.find(read.section + "."); at < nearest.size(); ++at)
    if (nearest[at] == '-') nearest[at] = '_';
  return nearest;
}

}  // namespace stagecraft
