// The words that other programs use for fields and values here, for "did you mean".

#include "sim/config/synonyms.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

struct Synonyms {
  std::string_view ours;   ///< Names of fields or values here, separated by spaces.
  std::string_view words;  ///< What others write, separated by spaces.
  std::string_view place = {};
};

constexpr Synonyms kFields[] = {
    {"sequence",
     "seq_len seq_length seqlen seq_size sequence_length max_seq_len max_seq_length context_length "
     "max_position_embeddings n_positions"},
    {"vocabulary", "vocab vocab_size n_vocab vocabulary_size padded_vocab_size"},
    {"layers", "n_layers num_layers num_hidden_layers n_layer nlayers num_blocks"},
    {"hidden", "hidden_size d_model n_embd embed_dim embedding_size model_dim"},
    {"feed_forward", "ffn d_ff ffn_hidden_size ffn_dim intermediate_size mlp_size n_inner feedforward"},
    {"heads", "n_heads num_heads num_attention_heads n_head attn_heads attn_size"},
    {"key_value_heads", "kv_heads n_kv_heads num_kv_heads num_key_value_heads num_query_groups"},
    {"head_width", "head_dim d_head head_size kv_channels attn_head_size"},
    {"window", "sliding_window window_size"},
    {"tied", "tie_word_embeddings tie_embeddings share_embeddings"},
    {"norm", "normalization norm_type"},
    {"gated", "swiglu gated_linear_unit"},
    {"positions", "position_embedding_type rope"},
    {"count experts", "num_experts n_experts num_local_experts n_routed_experts num_moe_experts"},
    {"active", "top_k topk num_experts_per_tok moe_router_topk experts_per_token"},
    {"width", "moe_intermediate_size moe_ffn_hidden_size"},
    {"shared", "n_shared_experts num_shared_experts"},
    {"next_tokens", "mtp_num_layers num_nextn_predict_layers"},
    {"stages",
     "pp pp_size pipeline_parallel pipeline_parallel_size pipeline_parallel_degree pipeline_model_parallel_size "
     "pipeline_par"},
    {"tensor",
     "tp tp_size tensor_parallel tensor_parallel_size tensor_parallel_degree tensor_model_parallel_size tensor_par "
     "model_parallel_size",
     "plan.group"},
    {"sequence", "sp sequence_parallel sequence_parallelism", "plan.group"},
    {"context", "cp cp_size context_parallel context_parallel_size context_parallel_degree", "plan.group"},
    {"context_type", "cp_comm_type", "plan.group"},
    {"expert", "ep ep_size expert_parallel expert_parallel_size expert_parallel_degree expert_model_parallel_size",
     "plan.group"},
    {"expert_tensor", "etp etp_size expert_tensor_parallel expert_tensor_parallel_size expert_tensor_parallel_degree",
     "plan.group"},
    {"dispatcher", "moe_token_dispatcher_type", "plan.group"},
    {"replicas",
     "dp dp_size data_parallel data_parallel_size data_parallel_degree data_par data_parallel_replicate_degree"},
    {"shard",
     "zero zero_stage fsdp fsdp2 hsdp zero_optimization distributed_optimizer use_distributed_optimizer zero_state "
     "sharding_strategy data_parallel_shard_degree",
     "plan"},
    {"chunks", "vp vpp virtual_pipeline virtual_pipeline_model_parallel_size num_chunks"},
    {"micro_batch_size", "mbs micro_batch microbatch_size train_micro_batch_size_per_gpu"},
    {"micro_batches",
     "num_microbatches n_microbatches ga gradient_accumulation gradient_accumulation_steps grad_accumulation_steps "
     "grad_accum micro_batch_num"},
    {"global_batch", "gbs global_batch_size train_batch_size"},
    {"recompute", "recomputation activation_checkpointing gradient_checkpointing recompute_granularity"},
    {"precision",
     "dtype torch_dtype data_type bf16 fp16 bfloat16 float16 half amp mixed_precision float32 float float64 double"},
};

constexpr Synonyms kValues[] = {
    {"interleaved", "1f1b_interleaved interleaved_1f1b interleaved1f1b"},
    {"mixed bf16", "bfloat16"},
    {"mixed fp16", "float16 half"},
    {"mixed", "bf16 fp16 amp mixed_precision"},
    {"fp32", "float32 float"},
    {"fp64", "float64 double"},
    {"none", "zero0 zero_0 zero_stage0 stage0 0 ddp no_shard"},
    {"optimizer", "zero1 zero_1 zero_stage1 stage1 1 distributed_optimizer"},
    {"gradients", "zero2 zero_2 zero_stage2 stage2 2 shard_grad_op"},
    {"weights", "zero3 zero_3 zero_stage3 stage3 3 fsdp fsdp2 full_shard hsdp hybrid_shard"},
    {"a2a", "ulysses all_to_all alltoall"},
    {"p2p", "ring ring_attention"},
    {"per_node", "deepep hybridep flex"},
};

std::string plain(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  text.erase(0, text.find_first_not_of('_'));
  return text;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool has_word(const Synonyms& row, std::string_view word) {
  const std::vector<std::string_view> words = words_of(row.words);
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool contains(std::span<const std::string> candidates, std::string_view name) {
  return std::find(candidates.begin(), candidates.end(), name) != candidates.end();
}

}  // namespace

std::vector<Meaning> meanings(std::string_view word) {
  const std::string asked = plain(word);
  for (const Synonyms& row : kFields) {
    if (!has_word(row, asked)) continue;
    std::vector<Meaning> result;
    for (const std::string_view name : words_of(row.ours)) result.push_back({name, row.place});
    return result;
  }
  return {};
}

std::optional<std::string> meant_field(std::string_view word, std::string_view path,
                                       std::span<const std::string> candidates) {
  for (const Meaning& m : meanings(word))
    if ((m.place.empty() || m.place == path) && contains(candidates, m.name)) return std::string(m.name);
  return {};
}

std::optional<std::string> meant_value(std::string_view word, std::span<const std::string> candidates) {
  const std::string asked = plain(word);
  for (const Synonyms& row : kValues) {
    if (!has_word(row, asked)) continue;
    for (const std::string_view value : words_of(row.ours))
      if (contains(candidates, value)) return std::string(value);
  }
  return {};
}

std::string suggest_field(std::string_view word, std::string_view path, std::span<const std::string> candidates) {
  if (const auto meant = meant_field(word, path, candidates)) return fmt::format("did you mean '{}'?", *meant);
  return suggest(word, candidates);
}

std::string suggest_value(std::string_view word, std::span<const std::string> candidates) {
  if (word.ends_with(".csv") && std::find(candidates.begin(), candidates.end(), "csv") != candidates.end())
    return fmt::format("write {{csv: {}}} for the order in a file", word);
  if (const auto meant = meant_value(word, candidates)) return fmt::format("did you mean '{}'?", *meant);
  return suggest(word, candidates);
}

}  // namespace stagecraft::config
