// Any network whose layers are written out one by one with the times that they take, such as profiles of PipeDream and
// inputs of dnn-partitioning.

#include "models/written_layers.hpp"

namespace stagecraft::model_builders {
namespace {

using config::Dimension;
using config::Value;

const config::MapSpec kTimedLayerFields{
    "One layer; all amounts are for one sample.",
    {config::text("name").doc("What plans and reports call it."),
     config::list("inputs", config::text("layer"))
         .optional()
         .doc("Earlier layers whose output it reads. Default: the layer before it."),
     config::quantity("forward", Dimension::Time).doc("Time on a device of speed 1."),
     config::quantity("input_gradient", Dimension::Time).fallback("0").doc("Time on a device of speed 1."),
     config::quantity("weight_gradient", Dimension::Time).fallback("0").doc("Time on a device of speed 1."),
     config::real("parameters", 0, 1e15).fallback("0").doc("Number of its parameters."),
     config::quantity("output", Dimension::Size)
         .fallback("0")
         .doc("Size of its output, which is sent to each layer that reads it."),
     config::quantity("stash", Dimension::Size)
         .fallback("0")
         .doc("Activations that it keeps from forward to backward.")}};

const config::MapSpec kTimedFields{"Layers written out one by one with the times they take.",
                                   {written_layers_field(kTimedLayerFields), precision_field()}};

void read_timed_layer(const Value& value, const std::string&, Bytes, Layer& layer, config::Problems&) {
  layer.times = LayerTimes{config::as_seconds(value.at("forward")), config::as_seconds(value.at("input_gradient")),
                           config::as_seconds(value.at("weight_gradient"))};
  layer.parameters = config::as_real(value.at("parameters"));
  layer.output = config::as_bytes(value.at("output"));
  layer.stash = config::as_bytes(value.at("stash"));
}

ModelGraph build_timed(const Value& map) { return read_written_layers(map, "timed", read_timed_layer); }

}  // namespace

extern const ModelBuilder timed{
    .name = "timed",
    .summary = "Layers written out one by one, with the times they take and their sizes.",
    .source = "no particular model",
    .fields = &kTimedFields,
    .build = build_timed,
};

}  // namespace stagecraft::model_builders
