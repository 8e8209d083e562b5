#pragma once

#include <cstdint>

#include "sim/experiment/run.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// The shape of a transformer, from its operations and the fields of its model; zero where there are none of a kind.
struct TransformerFacts {
  int layers = 0, hidden = 0, heads = 0, key_value_heads = 0, head_width = 0, feed_forward = 0, sequence = 0,
      vocabulary = 0;
  int experts = 0, active = 0, expert_width = 0;
  int expert_nodes = 0, expert_groups = 0;  ///< Groups that experts of a token are in at most, of these; 0: any.
  int shared_width = 0;                     ///< Width of the shared experts of a layer together.
  int dense_layers = 0;                     ///< Layers without experts, in a model with experts.
  bool dense_first = true;                  ///< They come before the others.
  int next_tokens = 0;                      ///< Next-token modules.
  double capacity = 0;                      ///< Padded rows of an expert over the mean; 0: no padding.
  bool gated = false, rms = false, rotary = false, tied = true, bias = false, latent = false;
  bool query_bias = false, query_norm = false, positions = false;
  bool fused_attention = true;
  bool sinks = false;         ///< Attention has learned scores.
  bool output_norms = false;  ///< Outputs of attention and dense layers are normalized.
  int window = 0;             ///< Tokens that attention looks back at; 0: all.
  int full_every = 0;         ///< The distance of layers that look at all tokens in spite of it; 0: there is none.
  /// Widths of latent attention, of the short queries (0: whole ones) and keys, and of parts of a head.
  int query_rank = 0, key_value_rank = 0, rope_width = 0, nope_width = 0, value_width = 0;
};

TransformerFacts facts_of(const PlannedExperiment&);

/// What a layer is to a framework that divides a transformer.
enum class LayerPart : std::uint8_t { Embedding, Layer, NextToken, Norm, Head, Loss };
LayerPart part_of(const Layer&);

}  // namespace stagecraft
