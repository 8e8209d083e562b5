// Decoders beyond GPT-2: their layers, and amounts that follow from operations.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/cost/stage_cost.hpp"
#include "sim/model/builder.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/presets.hpp"

namespace stagecraft::decoder_test {
namespace {

ModelGraph make(const std::string& fields) {
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", "transformer");
  return def.build(test::checked("{" + fields + "}", *def.fields));
}

std::string error_of(const std::string& fields) {
  return test::input_error_of([&] { make(fields); });
}

const Layer& layer_called(const ModelGraph& model, const std::string& name) {
  const auto id = model.find(name);
  REQUIRE(id);
  return model.layers[*id];
}

int count_of(const Layer& layer, OperationKind kind) {
  return static_cast<int>(std::count_if(layer.operations.begin(), layer.operations.end(),
                                        [&](const Operation& op) { return op.kind == kind; }));
}

const std::string kPlain = "layers: 2, hidden: 24, heads: 4, sequence: 6, vocabulary: 17";
const std::string kLlama =
    "layers: 2, hidden: 64, heads: 8, key_value_heads: 2, feed_forward: 96, sequence: 40, "
    "vocabulary: 50, positions: rotary, norm: rms, gated: true, bias: false, tied: false, "
    "flash_attention: true, precision: mixed";
const std::string kLatent =
    "latent: {query: 24, key_value: 16, rope: 4, nope: 8, value: 6}, layers: 2, hidden: 64, "
    "heads: 8, feed_forward: 96, sequence: 40, vocabulary: 50, positions: rotary, norm: rms, "
    "gated: true, bias: false, tied: false, flash_attention: true";

bool equal_amounts(const Layer& a, const Layer& b) {
  return a.forward == b.forward && a.input_gradient == b.input_gradient && a.weight_gradient == b.weight_gradient &&
         a.parameters == b.parameters && a.output == b.output && a.stash == b.stash && a.core.stash == b.core.stash &&
         a.core.forward == b.core.forward && a.operations == b.operations;
}

/// Parameters, operations, output and kept bytes of every layer are the sums over its operations.
void check_derived(const ModelGraph& model) {
  for (const Layer& layer : model.layers) {
    CAPTURE(layer.name);
    REQUIRE_FALSE(layer.operations.empty());
    double parameters = 0;
    Flops forward, input, weight;
    for (std::size_t i = 0; i < layer.operations.size(); ++i) {
      const Operation& op = layer.operations[i];
      parameters += op.parameters();
      forward += flops(op, Pass::Forward);
      input += flops(op, Pass::InputGradient);
      weight += flops(op, Pass::WeightGradient);
      for (const int from : op.inputs) {
        CHECK(from < static_cast<int>(i));
        CHECK(from >= -static_cast<int>(layer.inputs.size()));
      }
    }
    const bool shared = !layer.tie.empty() && layer.parameters == 0;
    CHECK((shared || layer.parameters == parameters));
    CHECK(layer.forward == forward);
    CHECK(layer.input_gradient == input);
    CHECK(layer.weight_gradient == weight);
    CHECK(layer.output == output_bytes(layer.operations.back(), model.precision.activation));
    if (layer.type != "input") CHECK(layer.stash == stash_bytes(layer.operations, model.precision.activation));
  }
}

}  // namespace

TEST_CASE("fields that say what GPT-2 has anyway change nothing") {
  const ModelGraph plain = make(kPlain);
  const ModelGraph said = make(kPlain +
                               ", key_value_heads: 4, head_width: 6, positions: learned, norm: layer, "
                               "gated: false, bias: true, query_key_norm: false, next_tokens: 0");
  REQUIRE(plain.layers.size() == said.layers.size());
  for (const LayerId l : plain.layers.ids()) CHECK(equal_amounts(plain.layers[l], said.layers[l]));
}

TEST_CASE("amounts of a decoder follow from its operations") {
  check_derived(make(kLlama));
  check_derived(make(kLatent));
  check_derived(make(kPlain + ", norm: rms"));
  check_derived(make(kLlama + ", query_key_norm: true, window: 8, full_every: 2, sinks: true"));
  check_derived(
      make(kLlama + ", experts: {count: 8, active: 2, width: 32, shared: 1, first_dense: 1}, next_tokens: 2"));
}

// Touvron et al., 2023; operations as in Korthikanti et al. with grouped queries and three matrices, causal half
// counted.
TEST_CASE("a layer of Llama has the parameters, operations and kept bytes of its closed forms") {
  const ModelGraph model = make(kLlama);
  const Layer& layer = layer_called(model, "l0");
  constexpr double s = 40, h = 64, g = 2, a = 8, width = 8, f = 96;
  const double matrices = h * (2 * h + 2 * g * width) + 3 * h * f, core = 4 * s * s * h / 2, norms = 2 * 4 * s * h;
  CHECK(layer.parameters == matrices + 2 * h);
  CHECK(layer.forward.value == 2 * s * matrices + core + norms);
  CHECK(layer.input_gradient.value == 2 * s * matrices + 2.5 * core + norms);
  CHECK(layer.weight_gradient.value == 2 * s * matrices + norms);
  CHECK(layer.stash.value == s * h * (12 + 4 * g / a + 6 * f / h));
  CHECK(layer.core.stash.value == 0);
  CHECK(layer.output.value == 2 * s * h);
}

TEST_CASE("attention that is not fused keeps probabilities, which selective recomputation can drop") {
  const std::string unfused = "layers: 1, hidden: 64, heads: 8, sequence: 40, vocabulary: 50, norm: rms";
  const Layer layer = layer_called(make(unfused), "l0");
  CHECK(layer.core.stash.value == 4 * 8 * 40 * 40);
  CHECK(layer.core.forward.value == 4 * 40 * 40 * 64);
  const Layer dropout = layer_called(make(unfused + ", attention_dropout: true"), "l0");
  CHECK(dropout.stash.value - layer.stash.value == (4 + 1) * 8 * 40 * 40);
}

TEST_CASE("latent attention has the parameters that its paper counts") {
  const ModelGraph model = make(kLatent);
  constexpr double h = 64, q = 24, kv = 16, rope = 4, nope = 8, v = 6, a = 8, f = 96;
  const double attention = h * q + q + q * a * (nope + rope) + h * (kv + rope) + kv + kv * a * (nope + v) + a * v * h;
  CHECK(layer_called(model, "l0").parameters == attention + 3 * h * f + 2 * h);
  const std::string direct = "latent: {key_value: 16, rope: 4, nope: 8, value: 6}";
  const ModelGraph without = make(direct + kLatent.substr(kLatent.find('}') + 1));
  CHECK(layer_called(without, "l0").parameters - 3 * h * f - 2 * h ==
        h * a * (nope + rope) + h * (kv + rope) + kv + kv * a * (nope + v) + a * v * h);
}

TEST_CASE("experts stand in the layers that the fields say, with the rows that tokens send") {
  const ModelGraph model =
      make(kLlama + ", experts: {count: 8, active: 2, width: 32, shared: 1, first_dense: 1, every: 1}");
  CHECK(layer_called(model, "l0").type == "transformer_layer");
  const Layer& layer = layer_called(model, "l1");
  CHECK(layer.type == "experts_layer");
  constexpr double h = 64, e = 8, fe = 32, attention = h * (2 * h + 2 * 2 * 8);
  CHECK(layer.parameters == attention + 2 * h + h * e + e * 3 * h * fe + 3 * h * fe);
  for (const Operation& op : layer.operations)
    if (op.kind == OperationKind::GroupedLinear) CHECK(op.rows == 2 * 40);
  CHECK(count_of(layer, OperationKind::GroupedLinear) == 2);
  CHECK(count_of(layer, OperationKind::GatedSilu) == 2);
  CHECK(active_parameters(model, false) ==
        model.parameters() - 50 * h - (e - 2) * 3 * h * fe);  // Without idle experts and the embedding.
  CHECK(active_parameters(model, true) == model.parameters() - (e - 2) * 3 * h * fe);

  const Layer padded = layer_called(
      make(kLlama +
           ", experts: {count: 8, active: 2, width: 32, every: 2, capacity: 1.25, imbalance: 2, nodes: 3, groups: 4}"),
      "l1");
  for (const Operation& op : padded.operations) {
    if (op.kind == OperationKind::GroupedLinear) CHECK(op.rows == 100);
    if (op.kind == OperationKind::Combine) CHECK(op.rows == 40);
    if (op.kind == OperationKind::Dispatch) CHECK((op.nodes == 3 && op.groups == 4 && op.imbalance == 2));
  }
}

TEST_CASE("Megatron-Core keeps casts of what one product reads, and nothing of what experts return") {
  const ModelGraph model = make(kLlama + ", experts: {count: 8, active: 2, width: 32, first_dense: 1}");
  constexpr double s = 40, h = 64, f = 96, rows = 2 * s, fe = 32, saved = 2 - 33.0 / 32;
  const auto stash = [&](const char* layer, const char* software, NumberFormat format, const Degrees& d = {}) {
    const CostRules rules{.software = software_stack(software), .format = format};
    return layer_memory(model, *model.find(layer), Recomputation::None, whole_samples(1), d, &rules).stash.value;
  };
  const double dense = layer_called(model, "l0").stash.value, experts = layer_called(model, "l1").stash.value;
  CHECK(stash("l0", "megatron-core", NumberFormat::Bf16) == dense);
  // Outputs of both norms and of the activation. Attention keeps its output itself.
  CHECK(stash("l0", "megatron-core", NumberFormat::MxFp8) == doctest::Approx(dense - saved * s * (2 * h + f)));
  CHECK(stash("l0", "torchtitan", NumberFormat::MxFp8) == dense);
  CHECK(stash("l1", "megatron-core", NumberFormat::Bf16) == doctest::Approx(experts - 2 * rows * h));
  // The router reads the second norm, too, in 16 bits.
  CHECK(stash("l1", "megatron-core", NumberFormat::MxFp8) ==
        doctest::Approx(experts - 2 * rows * h - saved * (s * h + rows * (h + fe))));
  CHECK(stash("l1", "nemo", NumberFormat::Bf16) == experts);
  CostRules flash{.software = software_stack("megatron-core")};
  flash.software.attention_kernel = AttentionKernel::Flash2;
  CHECK(
      layer_memory(model, *model.find("l0"), Recomputation::None, whole_samples(1), {.tensor = 2}, &flash).stash.value -
          stash("l0", "megatron-core", NumberFormat::Bf16, {.tensor = 2}) ==
      doctest::Approx(2 * s * h / 2));  // Its output in the order of samples.
  CHECK(stash("l1", "megatron-core", NumberFormat::Bf16, {.context = 2}) ==
        doctest::Approx((experts - 2 * rows * h) / 2));
}

TEST_CASE("of full_every layers the last has no window") {
  const ModelGraph model = make(kLlama + ", window: 8, full_every: 2");
  for (const auto& [name, window] : {std::pair{"l0", 8}, std::pair{"l1", 0}})
    for (const Operation& op : layer_called(model, name).operations)
      if (op.kind == OperationKind::Attention) CHECK(op.window == window);
  CHECK(layer_called(model, "l0").forward.value < layer_called(model, "l1").forward.value);
}

TEST_CASE("GPUs that share each layer keep copies of what lies between the products, but for sequence parallelism") {
  constexpr double s = 40, h = 64;
  const Layer alone = layer_called(make(kLlama), "l0");
  const Layer group = layer_called(make(kLlama + ", tensor_parallel: 4"), "l0");
  const Layer divided = layer_called(make(kLlama + ", tensor_parallel: 4, sequence_parallel: true"), "l0");
  CHECK(group.stash.value - alone.stash.value == 3 * 2 * 4 * s * h);  // Inputs of both norms and of both products.
  CHECK(divided.stash == alone.stash);
}

TEST_CASE("a module for the token after next adds a layer and shares embedding and scores") {
  const ModelGraph without = make(kLlama), model = make(kLlama + ", next_tokens: 1");
  constexpr double h = 64;
  CHECK(model.parameters() == without.parameters() + 2 * h * h + 2 * h + layer_called(without, "l0").parameters + h);
  CHECK(layer_called(model, "embed").tie == layer_called(model, "mtp0.embed").tie);
  CHECK(layer_called(model, "lm_head").tie == layer_called(model, "mtp0.lm_head").tie);
  CHECK(layer_called(model, "embed").tie != layer_called(model, "lm_head").tie);
  CHECK(layer_called(model, "mtp0.join").inputs.size() == 2);
  CHECK(layer_called(without, "embed").tie.empty());
}

TEST_CASE("what does not fit together is refused where it stands") {
  CHECK(error_of(kLlama + ", kind: bert").find("a model of kind bert has no such field") != std::string::npos);
  CHECK(error_of("layers: 1, hidden: 64, heads: 8, key_value_heads: 3, sequence: 4, vocabulary: 5")
            .find("3 heads of keys do not divide 8 heads") != std::string::npos);
  CHECK(error_of(kLatent + ", head_width: 8").find("the widths of latent attention are fields of latent") !=
        std::string::npos);
  CHECK(error_of(kLlama + ", full_every: 2").find("every layer looks at all tokens") != std::string::npos);
  CHECK(error_of(kLlama + ", head_width: 7").find("odd number") != std::string::npos);
  CHECK(error_of(kLlama + ", experts: {count: 2, active: 4, width: 8}").find("4 experts cannot work on a token") !=
        std::string::npos);
  CHECK(error_of("layers: 1, hidden: 1e6, heads: 1e4, head_width: 1e5, sequence: 4, vocabulary: 5")
            .find("numbers wide, which is too much") != std::string::npos);
  CHECK(error_of("layers: 1, hidden: 8, heads: 2, sequence: 1e8, vocabulary: 5, experts: {count: 1e4, active: 1e4, "
                 "width: 8}")
            .find("rows to experts, which is too much") != std::string::npos);
}

}  // namespace stagecraft::decoder_test
