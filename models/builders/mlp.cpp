// Dense layers one after the other, for one row a sample. The output of relu and tanh, which their gradient needs, is
// the input that the next layer keeps anyway; GELU needs what went in.

#include <fmt/core.h>

#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

const config::MapSpec kMlpFields{
    "A multi-layer perceptron with a softmax at its end.",
    {config::list("widths", config::integer("width", 1, 1e7))
         .doc("Width of the input, then of each dense layer; at least two."),
     config::choice("activation", std::vector<std::string>{"relu", "tanh", "gelu", "none"})
         .fallback("relu")
         .doc("Activation after each dense layer except the last."),
     config::choice("loss", std::vector<std::string>{"cross_entropy", "mean_square", "sum_square"})
         .fallback("cross_entropy")
         .doc("Loss function of the last layer."),
     precision_field()}};

OperationKind loss_kind(const std::string& word) {
  if (word == "mean_square") return OperationKind::MeanSquare;
  return word == "sum_square" ? OperationKind::SumSquare : OperationKind::CrossEntropy;
}

ModelGraph build_mlp(const config::Value& map) {
  const config::Value& widths = map.at("widths");
  config::Problems problems;
  if (widths.items.size() < 2)
    problems.add(widths.where, "widths", "there is no layer between fewer than two widths",
                 "such as [784, 512, 512, 10]", "widths");
  problems.throw_if_any();

  GraphWriter writer("mlp", map);
  writer.set_without_tokens();
  const std::string &activation = map.at("activation").text, &loss = map.at("loss").text;
  int width = config::as_int(widths.items.front());
  LayerId last = writer.add("input", "input", {}, source(width), {source_of(1, width)});
  for (std::size_t i = 1; i < widths.items.size(); ++i) {
    const int next = config::as_int(widths.items[i]);
    const std::string bent = i + 1 < widths.items.size() ? activation : "none";
    LayerAmounts amounts = dense(1, width, next);
    if (bent == "gelu") amounts.stash += next;
    last = writer.add(fmt::format("d{}", i - 1), "dense", {last}, amounts, dense_operations(1, width, next, bent));
    width = next;
  }
  const bool classes = loss == "cross_entropy";
  writer.add("loss", classes ? "softmax_xent" : "loss", {last}, classes ? cross_entropy(1, width) : square_error(width),
             {loss_of(loss_kind(loss), 1, width)});
  return writer.finish();
}

}  // namespace

extern const ModelBuilder mlp{
    .name = "mlp",
    .summary = "Dense layers one after the other.",
    .source = "no particular model",
    .fields = &kMlpFields,
    .build = build_mlp,
};

}  // namespace stagecraft::model_builders
