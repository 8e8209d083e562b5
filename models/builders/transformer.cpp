// GPT, BERT and ViT from closed forms; other decoders (Llama, DeepSeek) from their operations. Amounts of one layer (s
// tokens, width h, feed-forward f, a heads):
//   parameters 4h^2 + 2hf + 9h + f       flops 8sh^2 + 4s^2h + 4shf (Narayanan et al., SC 2021, appendix, for f = 4h)
//   kept for backward: nine tensors of sh (input, its norm, Q, K, V, context, projection, residual sum, its norm), two
//   of sf around the activation, and the probabilities as^2 (after Korthikanti et al., MLSys 2023, without dropout
//   masks); with dropout also what it left of them and a mask of a byte each. Where t GPUs are one device, input, both
//   norms, projection and residual sum lie on each of them, unless sequence parallelism divides them

#include <fmt/core.h>

#include "models/decoder_fields.hpp"
#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

using config::Value;

std::vector<config::Field> common_fields() {
  return {config::choice("kind", std::vector<std::string>{"gpt", "bert", "vit"})
              .fallback("gpt")
              .doc("Kind of Transformer. It decides the layers before and after the Transformer layers."),
          config::integer("layers", 1, 1e5).doc("Transformer layers."),
          config::integer("hidden", 1, 1e6).doc("Width of the model."),
          config::integer("heads", 1, 1e4).doc("Attention heads; they divide the width."),
          config::integer("feed_forward", 1, 1e7)
              .optional()
              .doc("Width inside the dense layers. Default: 4 times `hidden`."),
          config::integer("sequence", 1, 1e8).optional().doc("Tokens of one sample; required for gpt and bert."),
          config::integer("vocabulary", 1, 1e8).optional().doc("Size of the vocabulary; required for gpt and bert."),
          config::integer("image", 1, 1e5).fallback("224").doc("Side of the image in pixels; for vit."),
          config::integer("patch", 1, 1e5)
              .fallback("16")
              .doc("Side of a patch in pixels, which divides the side of the image; for vit."),
          config::integer("channels", 1, 1e4).fallback("3").doc("Color channels of an image; for vit."),
          config::integer("classes", 1, 1e8).fallback("1000").doc("Number of classes; for vit."),
          config::boolean("tied").fallback("true").doc(
              "Whether the output layer shares the weights of the embedding; for gpt. If the two are in different "
              "stages, both stages hold a copy. If these stages are on different devices, schedules that flush "
              "all-reduce its gradient in every iteration."),
          config::boolean("flash_attention")
              .optional()
              .doc("Whether attention is fused, as in FlashAttention: the attention probabilities are not kept for "
                   "backward, which computes them again. Default: as the software stack has it (stagecraft list "
                   "software); false without one."),
          config::boolean("attention_dropout")
              .optional()
              .doc("Whether dropout is applied to the attention probabilities. Its mask and its output are then kept "
                   "for backward. Default: false."),
          config::integer("tensor_parallel", 1, 1e4)
              .optional()
              .doc("Number of GPUs that divide each layer (tensor parallelism). They are one device here, and its "
                   "memory is the memory of one of them. Default: 1."),
          config::boolean("sequence_parallel")
              .optional()
              .doc("Whether these GPUs also divide the activations between the matrix products (sequence parallelism). "
                   "Default: false.")};
}

config::MapSpec make_fields() {
  config::MapSpec spec{"A Transformer: GPT, Llama, DeepSeek (decoders), BERT (encoder of text) or ViT (of images).",
                       common_fields()};
  for (config::Field& field : decoder_fields()) spec.fields.push_back(std::move(field));
  spec.fields.push_back(precision_field());
  return spec;
}

const config::MapSpec kTransformerFields = make_fields();

struct TransformerShape {
  DecoderShape decoder;  ///< The shape as whole numbers, with everything that only decoders other than GPT-2 have.
  double layers = 0, hidden = 0, heads = 0, feed_forward = 0, sequence = 0, vocabulary = 0;
  double probabilities = 1;  ///< Numbers kept for each probability: more with dropout, none if backward recomputes it.
  double copies = 1;         ///< GPUs of one device that each keep a copy of what they do not share.
  bool tied = true;
};

LayerAmounts transformer_layer(const TransformerShape& n) {
  const double s = n.sequence, h = n.hidden, f = n.feed_forward, inside = n.probabilities * n.heads * s * s;
  LayerAmounts layer = weighted(4 * h * h + 2 * h * f + 9 * h + f, 8 * s * h * h + 4 * s * s * h + 4 * s * h * f, s * h,
                                (5 * n.copies + 4) * s * h + 2 * s * f + inside);
  if (inside > 0) layer.core_forward = 4 * s * s * h, layer.core_stash = inside;
  return layer;
}

LayerId add_layers(GraphWriter& writer, const TransformerShape& n, LayerId last, bool causal) {
  const Operations operations =
      transformer_operations(static_cast<int>(n.sequence), static_cast<int>(n.hidden), static_cast<int>(n.feed_forward),
                             static_cast<int>(n.heads), causal, n.decoder.flash_attention);
  for (int l = 0; l < static_cast<int>(n.layers); ++l)
    last = writer.add(fmt::format("l{}", l), "transformer_layer", {last}, transformer_layer(n), operations);
  return last;
}

// The logits of every token over the vocabulary, with the weights of the embedding.
LayerAmounts tied_head(const TransformerShape& n, double own_parameters) {
  LayerAmounts head = weighted(own_parameters, 2 * n.sequence * n.hidden * n.vocabulary, n.sequence * n.vocabulary,
                               n.sequence * n.hidden);
  head.tie = "wte";
  return head;
}

LayerAmounts tied_to(std::string word, LayerAmounts amounts, bool owns) {
  amounts.tie = std::move(word);
  if (!owns) amounts.parameters = 0;
  return amounts;
}

/// The amounts of a layer of a decoder that is not GPT-2, from its operations.
LayerAmounts decoder_layer(const TransformerShape& n, const Operations& operations) {
  LayerAmounts amounts = amounts_of(operations);
  amounts.stash = 0;
  for (const KeptArray& array : kept_arrays(operations)) {
    const double copies = array.division == ArrayDivision::Sequence ? n.copies : 1;
    amounts.stash += array.numbers * (array.probabilities ? n.probabilities : copies);
  }
  amounts.core_stash *= n.probabilities;
  return amounts;
}

LayerId add_decoder_layers(GraphWriter& writer, const TransformerShape& n, LayerId last) {
  for (int l = 0; l < n.decoder.layers; ++l) {
    const Operations operations = decoder_operations(n.decoder, l);
    const char* type = n.decoder.layer_has_experts(l) ? "experts_layer" : "transformer_layer";
    last = writer.add(fmt::format("l{}", l), type, {last}, decoder_layer(n, operations), operations);
  }
  return last;
}

LayerId add_embedding(GraphWriter& writer, const TransformerShape& n, const std::string& prefix,
                      const std::string& tie) {
  const double s = n.sequence;
  const Operations tokens{source_of(n.decoder.sequence, 1)}, embedding{embedding_operation(n.decoder)};
  const LayerId source_id = writer.add(prefix + "tok", "input", {}, source(s), tokens);
  return writer.add(prefix + "embed", "embedding", {source_id}, tied_to(tie, amounts_of(embedding), prefix.empty()),
                    embedding);
}

void add_logits(GraphWriter& writer, const TransformerShape& n, const std::string& prefix, LayerId last,
                const std::string& tie, bool owns) {
  const Operations scores{logits_operation(n.decoder)};
  Operations loss{loss_of(OperationKind::CrossEntropy, n.decoder.sequence, n.decoder.vocabulary)};
  loss.front().division = Division::Vocabulary;
  last = writer.add(prefix + "lnf", "norm", {last}, amounts_of(final_norm_operations(n.decoder)),
                    final_norm_operations(n.decoder));
  last = writer.add(prefix + "lm_head", "dense", {last}, tied_to(tie, amounts_of(scores), owns), scores);
  writer.add(prefix + "loss", "softmax_xent", {last}, amounts_of(loss), loss);
}

// Touvron et al., Llama 2, 2023; Jiang et al., Mixtral of Experts, 2024; DeepSeek-AI, DeepSeek-V3, 2024. A module for
// the token after next reads its own tokens, so that no stage passes them on, and shares the weights of
// embedding and logits.
void build_decoder(GraphWriter& writer, const TransformerShape& n) {
  const bool shares = n.decoder.next_tokens > 0;
  const std::string words = n.tied || shares ? "wte" : "", scores = n.tied ? "wte" : shares ? "lm_head" : "";
  LayerId last = add_decoder_layers(writer, n, add_embedding(writer, n, "", words));
  add_logits(writer, n, "", last, scores, !n.tied);
  for (int i = 0; i < n.decoder.next_tokens; ++i) {
    const std::string prefix = fmt::format("mtp{}.", i);
    const LayerId next = add_embedding(writer, n, prefix, words);
    const Operations join = next_token_operations(n.decoder);
    last = writer.add(prefix + "join", "dense", {last, next}, amounts_of(join), join);
    const Operations layer = decoder_operations(n.decoder, n.decoder.layers + i);
    last = writer.add(prefix + "l", n.decoder.has_experts ? "experts_layer" : "transformer_layer", {last},
                      decoder_layer(n, layer), layer);
    add_logits(writer, n, prefix, last, scores, false);
  }
}

// Radford et al., Language Models are Unsupervised Multitask Learners, 2019; Brown et al., NeurIPS 2020.
void build_gpt(GraphWriter& writer, const TransformerShape& n) {
  if (!n.decoder.is_plain_gpt()) return build_decoder(writer, n);
  const double s = n.sequence, h = n.hidden;
  const int rows = static_cast<int>(s), width = static_cast<int>(h), words = static_cast<int>(n.vocabulary);
  LayerAmounts head = tied_head(n, n.tied ? 0 : h * n.vocabulary);
  if (!n.tied) head.tie.clear();
  LayerId last = writer.add("tok", "input", {}, source(s), {source_of(rows, 1)});
  last = writer.add("embed", "embedding", {last}, {(n.vocabulary + s) * h, 0, 0, s * h, s * h, s, n.tied ? "wte" : ""},
                    {embedding_operation(n.decoder)});
  last = add_layers(writer, n, last, true);
  last = writer.add("lnf", "layernorm", {last}, layer_norm(s, h), norm_operations(rows, width));
  last = writer.add("lm_head", "dense", {last}, head, {logits_operation(n.decoder)});
  Operation loss = loss_of(OperationKind::CrossEntropy, rows, words);
  loss.division = Division::Vocabulary;
  writer.add("loss", "softmax_xent", {last}, cross_entropy(s, n.vocabulary), {loss});
}

// Devlin et al., NAACL 2019: token, position and two segment embeddings with a norm; masked words and next sentence.
void build_bert(GraphWriter& writer, const TransformerShape& n) {
  const double s = n.sequence, h = n.hidden;
  LayerId last = writer.add("tok", "input", {}, source(2 * s));
  last = writer.add("embed", "embedding", {last},
                    {(n.vocabulary + s + 2) * h + 2 * h, 5 * s * h, 0, s * h, s * h, s * h + 2 * s, "wte"});
  last = add_layers(writer, n, last, false);
  const LayerId pooler = writer.add("pooler", "dense", {last}, dense(1, h, h));
  LayerAmounts transform = dense(s, h, h);
  transform.stash += s * h;  // The input of its activation.
  last = writer.add("mlm_transform", "dense", {last}, transform);
  last = writer.add("mlm_ln", "layernorm", {last}, layer_norm(s, h));
  last = writer.add("mlm_decoder", "dense", {last}, tied_head(n, n.vocabulary));
  const LayerId nsp = writer.add("nsp", "dense", {pooler}, dense(1, h, 2));
  writer.add("loss", "softmax_xent", {last, nsp}, cross_entropy(s, n.vocabulary));
}

// Dosovitskiy et al., ICLR 2021: patches through one matrix, a class token, learnt positions.
void build_vit(GraphWriter& writer, const TransformerShape& n, const Value& map) {
  const double h = n.hidden, channels = config::as_real(map.at("channels"));
  const double pixels = config::as_real(map.at("image")), side = config::as_real(map.at("patch"));
  const double patches = n.sequence - 1, patch = side * side * channels, numbers = pixels * pixels * channels;
  const double classes = config::as_real(map.at("classes"));
  const int rows = static_cast<int>(n.sequence), width = static_cast<int>(h);
  // A patch is a row of its numbers, so its convolution is a product.
  const Operations embedding{linear(rows - 1, static_cast<int>(patch), width),
                             {.kind = OperationKind::Prepend, .inputs = {0}, .rows = rows, .columns = width}};
  const Operations scores{{.kind = OperationKind::FirstRow, .inputs = {-1}, .columns = width, .inner = rows},
                          linear(1, width, static_cast<int>(classes), {0})};
  writer.set_without_tokens();
  LayerId last = writer.add("img", "input", {}, source(numbers), {source_of(rows - 1, static_cast<int>(patch))});
  last = writer.add("patch_embed", "conv", {last},
                    weighted(patch * h + h + h + n.sequence * h, 2 * patches * patch * h, n.sequence * h, numbers),
                    embedding);
  last = add_layers(writer, n, last, false);
  last = writer.add("lnf", "layernorm", {last}, layer_norm(n.sequence, h), norm_operations(rows, width));
  last = writer.add("head", "dense", {last}, dense(1, h, classes), scores);
  writer.add("loss", "softmax_xent", {last}, cross_entropy(1, classes),
             {loss_of(OperationKind::CrossEntropy, 1, static_cast<int>(classes))});
}

TransformerShape read_shape(const Value& map) {
  config::Problems problems;
  TransformerShape n;
  n.layers = config::as_real(map.at("layers"));
  n.hidden = config::as_real(map.at("hidden"));
  n.heads = config::as_real(map.at("heads"));
  n.feed_forward = map.has("feed_forward") ? config::as_real(map.at("feed_forward")) : 4 * n.hidden;
  n.tied = config::as_bool(map.at("tied"));
  const auto is = [&](const char* field) { return map.has(field) && config::as_bool(map.at(field)); };
  if (is("attention_dropout")) n.probabilities = 2 + 1 / read_precision(map).activation;
  if (is("flash_attention")) n.probabilities = 0;
  if (map.has("tensor_parallel") && !is("sequence_parallel")) n.copies = config::as_real(map.at("tensor_parallel"));
  n.decoder = read_decoder(map, problems);
  const std::string& kind = map.at("kind").text;
  for (const config::Field& field : decoder_fields())
    if (kind != "gpt" && map.has(field.name))
      problems.add(map.at(field.name).where, field.name, fmt::format("a model of kind {} has no such field", kind),
                   "take this line out, or write kind: gpt", field.name);
  if (kind == "vit") {
    const int image = config::as_int(map.at("image")), patch = config::as_int(map.at("patch"));
    if (image % patch != 0)
      problems.add(map.at("patch").where, "patch",
                   fmt::format("a patch of {} pixels does not divide an image of {}", patch, image), {}, "patch");
    n.sequence = static_cast<double>(image / patch) * (image / patch) + 1;
  } else {
    for (const char* key : {"sequence", "vocabulary"})
      if (!map.has(key))
        problems.add(map.where, {}, fmt::format("the field '{}' is missing", key), kind + " needs it", "missing-field");
    if (map.has("sequence")) n.sequence = config::as_real(map.at("sequence"));
    if (map.has("vocabulary")) n.vocabulary = config::as_real(map.at("vocabulary"));
  }
  problems.throw_if_any();
  return n;
}

ModelGraph build_transformer(const Value& map) {
  const TransformerShape shape = read_shape(map);
  const std::string& kind = map.at("kind").text;
  GraphWriter writer(kind, map);
  if (kind == "gpt") build_gpt(writer, shape);
  if (kind == "bert") build_bert(writer, shape);
  if (kind == "vit") build_vit(writer, shape, map);
  return writer.finish();
}

}  // namespace

extern const ModelBuilder transformer{
    .name = "transformer",
    .summary = "GPT, BERT or ViT by layers, width, heads and sequence.",
    .source = "Vaswani et al., NIPS 2017; Narayanan et al., SC 2021",
    .fields = &kTransformerFields,
    .build = build_transformer,
};

}  // namespace stagecraft::model_builders
