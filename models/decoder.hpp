#pragma once

#include <cstdint>

#include "models/operations.hpp"

namespace stagecraft {

/// Multi-head latent attention: Q, and K with V, are made from short vectors (DeepSeek-AI, DeepSeek-V2, 2024, section
/// 2.1). `nope` and `rope` are the numbers of a head of Q and K without and with rotation, `value` those in a head of
/// V.
struct LatentShape {
  int query = 0;  ///< Width of the short vector of Q; 0: Q is made from the input.
  int key_value = 0, rope = 0, nope = 0, value = 0;
};

/// Experts in place of the dense layers of a Transformer layer.
struct ExpertsShape {
  int count = 0, active = 0, width = 0;
  int shared = 0;  ///< Experts that work on every token.
  /// The first `first_dense` layers are dense. Of the others, those have experts whose number, counted from 1, `every`
  /// divides.
  int first_dense = 0, every = 1;
  double capacity = 0;   ///< Rows of an expert over the mean, with padding; 0: no row is dropped or padded.
  double imbalance = 1;  ///< Rows of the busiest device of an expert group over the mean.
  int nodes = 0;         ///< The experts of one token are on at most this many nodes; 0: on any number.
  int groups = 0;        ///< Experts are in this many groups, of which a token has `nodes`; 0: a group is on a node.
};

enum class PositionKind : std::uint8_t { Learned, Rotary, None };

/// The shape of a decoder of text: everything from GPT to mixtures of experts with latent attention.
struct DecoderShape {
  int layers = 1, hidden = 1, heads = 1, feed_forward = 1, sequence = 1, vocabulary = 1;
  int key_value_heads = 1, head_width = 1;
  bool latent_attention = false;
  LatentShape latent;
  PositionKind positions = PositionKind::Learned;
  bool rms_norm = false, gated = false;
  bool bias = true;                                         ///< Dense layers, experts and routers have one.
  bool attention_bias = true, query_key_value_bias = true;  ///< The output of attention; what makes Q, K and V.
  bool query_key_norm = false, sinks = false;
  bool output_norms = false;  ///< What attention and dense layers or experts add is normalized first (Gemma 2).
  int window = 0;             ///< Tokens that a layer looks at; 0: all.
  int full_every = 0;  ///< The last of each `full_every` layers looks at all tokens; 0: there is no such exception.
  bool flash_attention = false;
  ExpertsShape experts;
  bool has_experts = false;
  int next_tokens = 0;  ///< Modules that predict one token further each.

  /// A layer of GPT as Radford et al. published it, whose amounts have a closed form.
  bool is_plain_gpt() const;
  bool layer_has_experts(int layer) const;
  int window_of(int layer) const;
};

/// The operations of Transformer layer `layer`; input 0 of the layer is the residual stream.
Operations decoder_operations(const DecoderShape&, int layer);
/// The norm after the last layer.
Operations final_norm_operations(const DecoderShape&);
Operation embedding_operation(const DecoderShape&);
/// The logits of every token over the vocabulary.
Operation logits_operation(const DecoderShape&);
/// How a module that predicts a later token begins: norms of the residual stream (input 0) and of the embedding of the
/// next token (input 1), side by side through one matrix (DeepSeek-AI, DeepSeek-V3, 2024, section 2.2).
Operations next_token_operations(const DecoderShape&);

}  // namespace stagecraft
