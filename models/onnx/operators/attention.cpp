// Attention as one operator, as optimizers and newer exporters write it, rotary embeddings, and embeddings with a norm.
// For q queries over k keys in heads of width d with values of width v: 2 q k d and 2 q k v operations per head, five
// per score for softmax; twice the products for the gradients. Backward keeps queries, keys, values and probabilities.
// Products with weights count 2 (outputs) x (inputs).

#include <fmt/core.h>

#include "models/onnx/operator.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::onnx {
namespace {

struct AttentionShape {
  double count, queries, keys, width, values;  ///< Heads of all samples, lengths, and two widths.

  double scores() const { return count * queries * keys; }
  double work() const { return scores() * (2 * width + 2 * values + 5); }
};

void require_rank(const OperatorCall& c, std::size_t input, std::size_t rank) {
  if (c.rank(input) != rank)
    c.fail(fmt::format("input {} is {}; {} dimensions are known here", input, to_text(c.input(input).shape), rank));
}

double d(std::int64_t size) { return static_cast<double>(size); }

/// Inputs `first` to `last` hold keys and values of earlier tokens.
void require_no_past(const OperatorCall& c, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i <= last; ++i)
    if (c.has(i) && c.input(i).numbers() > 0) c.fail("keys and values of earlier tokens are not known here");
}

/// com.microsoft: one matrix projects the input to queries, keys and values.
OperatorResult projected_attention(const OperatorCall& c) {
  require_rank(c, 0, 3);
  require_rank(c, 1, 2);
  require_no_past(c, 4, 4);
  const Shape& x = c.input(0).shape;
  Shape widths = c.integers("qkv_hidden_sizes");
  if (widths.empty()) widths.assign(3, c.input(1).shape[1] / 3);
  if (widths.size() != 3 || c.input(1).shape[0] != x[2])
    c.fail(fmt::format("weights of {}", to_text(c.input(1).shape)));
  const double heads = d(std::max<std::int64_t>(1, c.integer("num_heads", 1)));
  const AttentionShape h{d(x[0]) * heads, d(x[1]), d(x[1]), d(widths[0]) / heads, d(widths[2]) / heads};
  Tensor y = sized(c, c.input(0).type, {x[0], x[1], widths[2]});
  const double projected = d(x[0]) * d(x[1]) * d(c.input(1).shape[1]), product = 2 * projected * d(x[2]);
  OperatorResult result{{std::move(y)}, product + h.work()};
  result.gradients = {GradientWork{product + 2 * h.work(), 0}, GradientWork{product, reads_input(0)}, GradientWork{}};
  result.extra_stash = (projected + h.scores()) * bytes_of(c.input(0).type);
  return result;
}

OperatorResult attention_result(const OperatorCall& c, const AttentionShape& h, Shape shape) {
  OperatorResult result{{sized(c, c.input(0).type, std::move(shape))}, h.work()};
  const std::uint32_t reads = reads_input(0) | reads_input(1) | reads_input(2);
  const double product = 2 * h.scores();
  result.gradients = {GradientWork{product * h.width + 5 * h.scores(), reads}, GradientWork{product * h.width, reads},
                      GradientWork{product * h.values, reads}};
  // The gradient of the probabilities, which all three go through.
  result.gradients[0]->work += product * h.values;
  result.extra_stash = h.scores() * bytes_of(c.input(0).type);
  return result;
}

/// Queries, keys and values of samples x rows x width, or samples x heads x rows x width.
OperatorResult separate_attention(const OperatorCall& c) {
  const bool microsoft = !c.op.domain.empty();
  if (microsoft)
    require_no_past(c, 6, 7);
  else
    require_no_past(c, 4, 5);
  const Shape &q = c.input(0).shape, &k = c.input(1).shape, &v = c.input(2).shape;
  if (q.size() == 4 && k.size() == 4 && v.size() == 4)
    return attention_result(c, {d(q[0]) * d(q[1]), d(q[2]), d(k[2]), d(q[3]), d(v[3])}, {q[0], q[1], q[2], v[3]});
  for (const std::size_t i : {0U, 1U, 2U}) require_rank(c, i, 3);
  const std::int64_t heads = c.integer(microsoft ? "num_heads" : "q_num_heads", 0);
  const std::int64_t shared = microsoft ? heads : c.integer("kv_num_heads", 0);
  if (heads < 1 || shared < 1 || heads > q[2] || shared > heads) c.fail(pluralize(heads, "head"));
  const std::int64_t value = v[2] / shared;
  const AttentionShape h{d(q[0]) * d(heads), d(q[1]), d(k[1]), d(q[2] / heads), d(value)};
  return attention_result(c, h, {q[0], q[1], value * heads});
}

/// Word, position and segment embeddings, added, then a norm: tables are inputs 2, 3 and 4, the norm 5 and 6.
OperatorResult embedding(const OperatorCall& c) {
  require_rank(c, 0, 2);
  require_rank(c, 2, 2);
  const Shape& words = c.input(0).shape;
  Tensor y = sized(c, c.input(2).type, {words[0], words[1], c.input(2).shape[1]});
  const double n = y.numbers(), bytes = y.bytes();
  OperatorResult result{{std::move(y)}, 7 * n};
  for (std::size_t i = 1; i < c.node.outputs.size(); ++i) result.outputs.push_back({Type::Int32, {words[0]}});
  result.gradients = {
      {}, {}, GradientWork{0, reads_input(0)}, GradientWork{}, GradientWork{}, GradientWork{5 * n, 0}, GradientWork{}};
  result.extra_stash = bytes;
  return result;
}

/// Rotates pairs of numbers: four products and two sums for two numbers. The tables are not weights.
OperatorResult rotary(const OperatorCall& c) {
  Tensor y = sized(c, c.input(0).type, c.input(0).shape);
  const double work = 3 * y.numbers();
  return {{std::move(y)}, work, {GradientWork{work, 0}}};
}

const Operator attention_table[] = {
    {"Attention", separate_attention},
    {"RotaryEmbedding", rotary},
    {.name = "Attention", .apply = projected_attention, .domain = kMicrosoft},
    {.name = "MultiHeadAttention", .apply = separate_attention, .domain = kMicrosoft},
    {.name = "EmbedLayerNormalization", .apply = embedding, .domain = kMicrosoft},
    {.name = "RotaryEmbedding", .apply = rotary, .domain = kMicrosoft},
};

}  // namespace

Operators attention() { return attention_table; }

}  // namespace stagecraft::onnx
