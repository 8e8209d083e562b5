// The operations of a layer must have the costs that the layer states.

#include <doctest/doctest.h>

#include "sim/model/builder.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::operations_test {
namespace {

ModelGraph make(const std::string& builder, const std::string& yaml) {
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", builder);
  return def.build(test::checked(yaml, *def.fields));
}

/// Multiplications and additions of the matrix products alone.
double products(const Layer& layer) {
  double flops = 0;
  for (const Operation& op : layer.operations) {
    const double rows = op.rows, columns = op.columns;
    if (op.kind == OperationKind::Linear) flops += 2 * rows * op.inner * columns;
    if (op.kind == OperationKind::Attention) flops += 4 * rows * rows * columns;
  }
  return flops;
}

void check(const ModelGraph& model) {
  for (const Layer& layer : model.layers) {
    CAPTURE(model.name);
    CAPTURE(layer.name);
    REQUIRE_FALSE(layer.operations.empty());
    double parameters = 0;
    for (std::size_t i = 0; i < layer.operations.size(); ++i) {
      const Operation& op = layer.operations[i];
      parameters += op.parameters();
      for (const int input : op.inputs) {
        CHECK(input < static_cast<int>(i));
        CHECK(input >= -static_cast<int>(layer.inputs.size()));
      }
    }
    CHECK(parameters == layer.parameters);
    const Operation& last = layer.operations.back();
    if (!last.is_loss()) CHECK(layer.output.value == last.rows * last.columns * model.precision.activation);
    if (products(layer) > 0) CHECK(layer.forward.value == products(layer));
  }
}

}  // namespace

TEST_CASE("parameters, output and flops of a layer follow from its operations") {
  check(make("mlp", "{widths: [7, 5, 4, 3], activation: gelu}"));
  check(make("mlp", "{widths: [7, 5, 3], activation: none, loss: mean_square, precision: fp64}"));
  check(
      make("transformer",
           "{kind: gpt, layers: 2, hidden: 12, heads: 3, sequence: 5, vocabulary: 11, feed_forward: 20, tied: false}"));
  check(make("multi_branch", "{branches: 2, layers: 2, hidden: 8, heads: 2, sequence: 3}"));
  check(make("branched_mlp", "{dense: {a: {count: 2, input: 3, widths: [4, 5]}, b: {input: 6}}, top: [7, 2]}"));
  check(make("branched_mlp", "{dense: {a: {count: 2, input: 3, widths: [4]}}, top: [7], bias: false}"));
}

TEST_CASE("tied scores have no weights of their own, and no bias") {
  const ModelGraph model =
      make("transformer", "{kind: gpt, layers: 1, hidden: 12, heads: 3, sequence: 5, vocabulary: 11}");
  const Layer& head = model.layers[LayerId{model.layers.size() - 2}];
  CHECK(head.parameters == 0);
  CHECK(head.tie == model.layers[LayerId{1}].tie);
  CHECK(head.operations.front().parameters() == 12 * 11);  // The weights of the embedding: 12 x 11 words.
}

TEST_CASE("precision: 8 bytes everywhere, and two moments") {
  const ModelGraph model = make("mlp", "{widths: [7, 5], precision: fp64}");
  CHECK(model.precision.weight == 8);
  CHECK(model.precision.gradient == 8);
  CHECK(model.precision.activation == 8);
  CHECK(model.precision.optimizer == 16);
}

}  // namespace stagecraft::operations_test
