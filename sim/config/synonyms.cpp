#include "sim/config/synonyms.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

struct Synonyms {
  std::string_view ours;   ///< Names of fields or values here, separated by spaces.
  std::string_view words;  ///< What others write, separated by spaces.
};

constexpr Synonyms kSynonyms[] = {
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
    {"stages", "pp pp_size pipeline_parallel pipeline_parallel_size pipeline_model_parallel_size pipeline_par"},
    {"tensor tensor_parallel",
     "tp tp_size tensor_parallel_size tensor_model_parallel_size tensor_par model_parallel_size"},
    {"sequence_parallel", "sp sequence_parallelism"},
    {"context", "cp cp_size context_parallel context_parallel_size"},
    {"expert", "ep ep_size expert_parallel expert_parallel_size expert_model_parallel_size"},
    {"replicas", "dp dp_size data_parallel data_parallel_size data_par"},
    {"shard weights",
     "zero zero_stage fsdp zero_optimization distributed_optimizer use_distributed_optimizer zero_state"},
    {"interleaved", "1f1b_interleaved interleaved_1f1b interleaved1f1b"},
    {"chunks", "vp vpp virtual_pipeline virtual_pipeline_model_parallel_size num_chunks"},
    {"micro_batch_size", "mbs micro_batch microbatch_size train_micro_batch_size_per_gpu"},
    {"micro_batches", "num_microbatches n_microbatches gradient_accumulation_steps micro_batch_num"},
    {"global_batch", "gbs global_batch_size train_batch_size"},
    {"recompute", "recomputation activation_checkpointing gradient_checkpointing recompute_granularity"},
    {"mixed precision", "bf16 fp16 bfloat16 float16 half amp mixed_precision"},
    {"fp32 precision", "float32 float"},
    {"fp64", "float64 double"},
    {"precision", "dtype torch_dtype data_type"},
    {"none", "zero0 zero_stage0 0"},
    {"optimizer", "zero1 zero_stage1 1"},
    {"gradients", "zero2 zero_stage2 2"},
    {"weights", "zero3 zero_stage3 3"},
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

}  // namespace

std::vector<std::string_view> meanings(std::string_view word) {
  const std::string asked = plain(word);
  for (const Synonyms& row : kSynonyms) {
    const std::vector<std::string_view> words = words_of(row.words);
    if (std::find(words.begin(), words.end(), asked) != words.end()) return words_of(row.ours);
  }
  return {};
}

std::optional<std::string> meant_among(std::string_view word, std::span<const std::string> candidates) {
  for (const std::string_view meaning : meanings(word))
    if (std::find(candidates.begin(), candidates.end(), meaning) != candidates.end()) return std::string(meaning);
  return {};
}

std::string suggest_meant(std::string_view word, std::span<const std::string> candidates) {
  if (const auto meant = meant_among(word, candidates)) return fmt::format("did you mean '{}'?", *meant);
  return suggest(word, candidates);
}

}  // namespace stagecraft::config
