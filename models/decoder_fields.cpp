// The fields of the builder `transformer` for decoders other than GPT-2 (grouped heads, latent attention, experts), and
// how they become a DecoderShape.

#include "models/decoder_fields.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <limits>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::boolean;
using config::choice;
using config::integer;
using config::Problems;
using config::real;
using config::Value;

constexpr double kWidest = 1e8;  ///< Columns of one operation, so that a whole number can count them.

const config::MapSpec kLatentFields{
    "Multi-head latent attention (DeepSeek-V2): Q, and K with V, are made from short vectors.",
    {integer("query", 1, 1e6)
         .optional()
         .doc("Width of the short vector of the queries; left out: queries are made from the input."),
     integer("key_value", 1, 1e6).doc("Width of the short vector that keys and values are made from."),
     integer("rope", 1, 1e5).doc("Numbers of each head of queries that are rotated; keys share one such vector."),
     integer("nope", 1, 1e5).doc("Numbers of each head of queries and keys that are not rotated."),
     integer("value", 1, 1e5).doc("Numbers of each head of values.")}};

const config::MapSpec kExpertsFields{
    "A mixture of experts in place of the dense layers.",
    {integer("count", 1, 1e5).doc("Routed experts of a layer."),
     integer("active", 1, 1e4).doc("Routed experts that work on each token."),
     integer("width", 1, 1e7).doc("Width inside one expert."),
     integer("shared", 0, 1e4).optional().doc("Experts that work on every token; left out: 0."),
     integer("first_dense", 0, 1e5)
         .optional()
         .doc("How many layers come first that have dense layers of the width `feed_forward` instead; left out: 0."),
     integer("every", 1, 1e5).optional().doc("Each how many-th layer has experts; left out: every layer."),
     real("capacity", 1, 1e3)
         .optional()
         .doc("Rows that each expert works on over the mean, filled up or dropped; left out: rows as they are routed."),
     real("imbalance", 1, 1e4)
         .optional()
         .doc("Rows of the busiest device of an expert group over the mean; left out: 1, which is an even load."),
     integer("nodes", 1, 1e4)
         .optional()
         .doc("The experts of one token are on at most this many nodes; left out: on any number."),
     integer("groups", 1, 1e5)
         .optional()
         .doc(
             "Groups of experts, of which a token has experts in `nodes` at most (Megatron-LM's moe-router-num-groups, "
             "with moe-router-group-topk for `nodes`). Where they are fewer than nodes, each is on several; left out: "
             "each is on one node.")}};

int whole(const Value& map, const char* field, int fallback) {
  const Value* value = map.find(field);
  return value ? config::as_int(*value) : fallback;
}

bool flag(const Value& map, const char* field, bool fallback) {
  const Value* value = map.find(field);
  return value ? config::as_bool(*value) : fallback;
}

double number(const Value& map, const char* field, double fallback) {
  const Value* value = map.find(field);
  return value ? config::as_real(*value) : fallback;
}

void refuse(const Value& map, const char* field, std::string message, std::string help, Problems& problems) {
  problems.add(map.at(field).where, field, std::move(message), std::move(help), field);
}

void read_heads(const Value& map, DecoderShape& n, Problems& problems) {
  n.heads = config::as_int(map.at("heads"));
  n.key_value_heads = whole(map, "key_value_heads", n.heads);
  n.head_width = whole(map, "head_width", n.hidden / n.heads);
  if (!map.has("head_width") && !n.latent_attention && n.hidden % n.heads != 0)
    refuse(map, "heads", fmt::format("{} heads do not divide a width of {}", n.heads, n.hidden), {}, problems);
  if (map.has("key_value_heads") && n.heads % n.key_value_heads != 0)
    refuse(map, "key_value_heads",
           fmt::format("{} heads of keys do not divide {}", n.key_value_heads, pluralize(n.heads, "head")), {},
           problems);
  if (n.latent_attention) {
    for (const char* field : {"key_value_heads", "head_width", "query_key_norm"})
      if (map.has(field))
        refuse(map, field, "the widths of latent attention are fields of latent", "take this line out, or latent",
               problems);
    n.key_value_heads = n.heads, n.head_width = n.latent.nope + n.latent.rope;
  }
  if (n.positions == PositionKind::Rotary && (n.latent_attention ? n.latent.rope : n.head_width) % 2 != 0)
    refuse(map, "positions", "a rotation turns pairs of numbers, but a head has an odd number of them", {}, problems);
}

void read_latent(const Value& map, DecoderShape& n) {
  const Value* latent = map.find("latent");
  n.latent_attention = latent != nullptr;
  if (!latent) return;
  n.latent = {whole(*latent, "query", 0), config::as_int(latent->at("key_value")), config::as_int(latent->at("rope")),
              config::as_int(latent->at("nope")), config::as_int(latent->at("value"))};
}

void read_experts(const Value& map, DecoderShape& n, Problems& problems) {
  const Value* e = map.find("experts");
  n.has_experts = e != nullptr;
  if (!e) return;
  n.experts = {config::as_int(e->at("count")), config::as_int(e->at("active")), config::as_int(e->at("width")),
               whole(*e, "shared", 0),         whole(*e, "first_dense", 0),     whole(*e, "every", 1),
               number(*e, "capacity", 0),      number(*e, "imbalance", 1),      whole(*e, "nodes", 0),
               whole(*e, "groups", 0)};
  if (n.experts.active > n.experts.count)
    problems.add(
        e->at("active").where, "experts.active",
        fmt::format("{} experts cannot work on a token where a layer has {}", n.experts.active, n.experts.count), {},
        "experts");
  if (const int groups = n.experts.groups; groups > 0 && (n.experts.count % groups != 0 || !e->has("nodes")))
    problems.add(e->at("groups").where, "experts.groups",
                 e->has("nodes") ? fmt::format("{} do not divide {}", pluralize(groups, "group"),
                                               pluralize(n.experts.count, "expert"))
                                 : "nothing says of how many groups a token has experts",
                 e->has("nodes") ? "a divisor of the experts" : "add `nodes`", "experts");
  if (n.experts.groups > 0 && n.experts.nodes > n.experts.groups)
    problems.add(e->at("nodes").where, "experts.nodes",
                 fmt::format("a token cannot have experts of {} where a layer has {}",
                             pluralize(n.experts.nodes, "group"), n.experts.groups),
                 fmt::format("at most {}", n.experts.groups), "experts");
  const double rows = static_cast<double>(n.sequence) * n.experts.active * std::max(1.0, n.experts.capacity);
  if (rows > std::numeric_limits<int>::max())
    problems.add(e->where, "experts", fmt::format("a sample sends {:.3g} rows to experts, which is too much", rows),
                 "take a shorter sequence or fewer active experts", "experts");
}

void read_window(const Value& map, DecoderShape& n, Problems& problems) {
  n.window = whole(map, "window", 0);
  n.full_every = whole(map, "full_every", 0);
  if (map.has("full_every") && !map.has("window"))
    refuse(map, "full_every", "without a window every layer looks at all tokens", "add window, or take this line out",
           problems);
}

void check_widths(const Value& map, const DecoderShape& n, Problems& problems) {
  const double head = n.latent_attention ? std::max(n.head_width, n.latent.nope + n.latent.value) : n.head_width;
  const double widest =
      std::max(head * (n.heads + 2.0 * n.key_value_heads),
               2.0 * std::max<double>(n.feed_forward, 1.0 * n.experts.width * std::max(1, n.experts.shared)));
  if (widest > kWidest)
    problems.add(map.where, {}, fmt::format("a layer is {:.3g} numbers wide, which is too much", widest),
                 fmt::format("at most {:.3g} are possible", kWidest), "too-wide");
}

}  // namespace

std::vector<config::Field> decoder_fields() {
  return {
      integer("key_value_heads", 1, 1e4)
          .optional()
          .doc("Heads of keys and values, each shared by as many heads of queries (grouped-query attention); they "
               "divide the heads; left out: as many as heads."),
      integer("head_width", 1, 1e5).optional().doc("Numbers of one head; left out: hidden / heads."),
      config::map("latent", kLatentFields)
          .optional()
          .doc("Multi-head latent attention; left out: queries, keys and values are made from the input."),
      choice("positions", std::vector<std::string>{"learned", "rotary", "none"})
          .optional()
          .doc(
              "How a layer knows where a token stands: a learned table at the embedding, rotation of queries and keys, "
              "or not at all; left out: learned."),
      choice("norm", std::vector<std::string>{"layer", "rms"})
          .optional()
          .doc("Layer norm with scale and offset, or RMS norm with a scale; left out: layer."),
      boolean("gated").optional().doc(
          "Whether the dense layers are gated (SwiGLU: three matrices instead of two, SiLU instead of GELU); left out: "
          "no."),
      boolean("bias").optional().doc("Whether matrices of layers, experts and routers have a bias; left out: yes."),
      boolean("attention_bias")
          .optional()
          .doc("Whether the matrices of attention have a bias; left out: as `bias` says."),
      boolean("query_key_value_bias")
          .optional()
          .doc("Whether the matrices of queries, keys and values have a bias; left out: as `attention_bias` says."),
      boolean("query_key_norm")
          .optional()
          .doc("Whether each head of queries and keys is normalized before attention (Qwen3); left out: no."),
      boolean("output_norms")
          .optional()
          .doc("Whether the outputs of attention and of dense layers are normalized before they are added (Gemma 2); "
               "left out: no."),
      boolean("sinks").optional().doc(
          "Whether each head has a learned score that takes a share of its attention (GPT-OSS); left out: no."),
      integer("window", 1, 1e8)
          .optional()
          .doc("Tokens that each token looks back at, itself included (sliding window); left out: all before it."),
      integer("full_every", 1, 1e5)
          .optional()
          .doc("Of this many layers the last has no window; left out: every layer has it."),
      config::map("experts", kExpertsFields)
          .optional()
          .doc("A mixture of experts in place of the dense layers; left out: none."),
      integer("next_tokens", 0, 100)
          .optional()
          .doc("Modules that predict one token further each, with one Transformer layer, the embedding and the scores "
               "of the model (multi-token prediction, DeepSeek-V3); left out: 0."),
  };
}

DecoderShape read_decoder(const Value& map, Problems& problems) {
  DecoderShape n;
  n.layers = config::as_int(map.at("layers"));
  n.hidden = config::as_int(map.at("hidden"));
  n.feed_forward = whole(map, "feed_forward", 4 * n.hidden);
  n.sequence = whole(map, "sequence", 1);
  n.vocabulary = whole(map, "vocabulary", 1);
  const Value* positions = map.find("positions");
  if (positions && positions->text != "learned")
    n.positions = positions->text == "rotary" ? PositionKind::Rotary : PositionKind::None;
  n.rms_norm = map.has("norm") && map.at("norm").text == "rms";
  n.gated = flag(map, "gated", false);
  n.bias = flag(map, "bias", true);
  n.attention_bias = flag(map, "attention_bias", n.bias);
  n.query_key_value_bias = flag(map, "query_key_value_bias", n.attention_bias);
  n.query_key_norm = flag(map, "query_key_norm", false);
  n.output_norms = flag(map, "output_norms", false);
  n.sinks = flag(map, "sinks", false);
  n.flash_attention = flag(map, "flash_attention", false);
  n.next_tokens = whole(map, "next_tokens", 0);
  read_latent(map, n);
  read_heads(map, n, problems);
  read_window(map, n, problems);
  read_experts(map, n, problems);
  check_widths(map, n, problems);
  return n;
}

}  // namespace stagecraft
