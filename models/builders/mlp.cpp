// Dense layers one after the other, for one row a sample.

#include <fmt/format.h>

#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

const config::MapSpec kFields{"A multi-layer perceptron with a softmax at its end.",
                              {config::list("widths", config::integer("width", 1, 1e7))
                                   .doc("Width of the input, then of each dense layer; at least two."),
                               precision_field()}};

ModelGraph build(const config::Value& map) {
  const config::Value& widths = map.at("widths");
  config::Problems problems;
  if (widths.items.size() < 2)
    problems.add(widths.where, "widths", "there is no layer between fewer than two widths",
                 "such as [784, 512, 512, 10]", "widths");
  problems.throw_if_any();

  GraphWriter writer("mlp", map);
  double width = config::as_real(widths.items.front());
  LayerId last = writer.add("input", "input", {}, source(width));
  for (std::size_t i = 1; i < widths.items.size(); ++i) {
    const double next = config::as_real(widths.items[i]);
    last = writer.add(fmt::format("d{}", i - 1), "dense", {last}, dense(1, width, next));
    width = next;
  }
  writer.add("loss", "softmax_xent", {last}, cross_entropy(1, width));
  return writer.finish();
}

}  // namespace

extern const ModelBuilder mlp{
    .name = "mlp",
    .summary = "Dense layers one after the other.",
    .source = "no particular model",
    .fields = &kFields,
    .build = build,
};

}  // namespace stagecraft::model_builders
