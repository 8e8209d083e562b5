// A chain of layers whose forward was measured on each type of device, such as profiles of PipeEdge.

#include <fmt/core.h>

#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

using config::Dimension;
using config::Value;

const config::MapSpec kMeasuredLayerFields{
    "One layer, which reads the one before; all amounts are for one sample.",
    {config::text("name").doc("What plans and reports call it."),
     config::table("forward", config::quantity("type", Dimension::Time))
         .doc("Forward time on each device type of the cluster, by name of the type."),
     config::real("parameters", 0, 1e15).fallback("0").doc("Number of its parameters."),
     config::quantity("output", Dimension::Size)
         .fallback("0")
         .doc("Size of its output, which is sent to the next layer.")}};

const config::MapSpec kMeasuredFields{"A chain of layers with the measured forward time on each type of device.",
                                      {config::list("layers", config::map("layer", kMeasuredLayerFields))
                                           .doc("The layers, in the order in which they run."),
                                       precision_field()}};

ModelGraph build_measured(const Value& map) {
  GraphWriter writer("measured", map);
  const Value& layers = map.at("layers");
  config::Problems problems;
  if (layers.items.empty()) problems.add(layers.where, "layers", "there is no layer", {}, "layers");
  problems.throw_if_any();
  std::vector<LayerId> inputs;
  for (const Value& value : layers.items) {
    inputs = {writer.add(value.at("name").text, "measured", inputs, {})};
    Layer& layer = writer.layer(inputs.front());
    for (const config::Member& type : value.at("forward").members)
      layer.times_on[type.key] = {config::as_seconds(type.value), {}, {}};
    layer.parameters = config::as_real(value.at("parameters"));
    layer.output = config::as_bytes(value.at("output"));
  }
  return writer.finish();
}

}  // namespace

extern const ModelBuilder measured{
    .name = "measured",
    .summary = "A chain of layers with the measured forward time on each type of device.",
    .source = "no particular model",
    .fields = &kMeasuredFields,
    .build = build_measured,
};

}  // namespace stagecraft::model_builders
