#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

const config::MapSpec fields{"Dense layers of one width.",
                             {config::integer("width", 1, 1e6).doc("Numbers of a sample."),
                              config::integer("layers", 1, 1e4).doc("How many."), precision_field()}};

ModelGraph build(const config::Value& map) {
  GraphWriter writer("single", map);
  const int width = config::as_int(map.at("width"));
  LayerId last = writer.add("input", "input", {}, source(width), {source_of(1, width)});
  for (int i = 0; i < config::as_int(map.at("layers")); ++i)
    last = writer.add("d" + std::to_string(i), "dense", {last}, dense(1, width, width),
                      dense_operations(1, width, width, "none"));
  writer.add("loss", "loss", {last}, square_error(width), {loss_of(OperationKind::MeanSquare, 1, width)});
  return writer.finish();
}

}  // namespace

extern const ModelBuilder single{
    .name = "single",
    .summary = "Dense layers of one width.",
    .source = "an example",
    .fields = &fields,
    .build = build,
};

}  // namespace stagecraft::model_builders
