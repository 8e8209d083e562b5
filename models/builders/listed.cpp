// Any network whose layers are written out one by one with their operations, parameters and sizes; `stagecraft import
// onnx` writes such models.

#include <fmt/core.h>

#include "models/written_layers.hpp"

namespace stagecraft::model_builders {
namespace {

using config::Dimension;
using config::Value;

const config::MapSpec kListedLayerFields{
    "One layer; all amounts are for one sample.",
    {config::text("name").doc("What plans and reports call it."),
     config::list("inputs", config::text("layer"))
         .optional()
         .doc("Earlier layers whose output it reads. Default: the layer before it."),
     config::quantity("forward", Dimension::Work)
         .doc("Floating-point operations of the forward; a multiplication with an addition counts as two."),
     config::quantity("input_gradient", Dimension::Work)
         .optional()
         .doc("Floating-point operations of the input gradient. Default: `forward`, or 0 for a layer "
              "without inputs."),
     config::quantity("weight_gradient", Dimension::Work)
         .optional()
         .doc("Floating-point operations of the weight gradient. Default: `forward`."),
     config::real("parameters", 0, 1e15).fallback("0").doc("Number of its parameters."),
     config::quantity("output", Dimension::Size)
         .fallback("0")
         .doc("Size of its output, which is sent to each layer that reads it."),
     config::quantity("stash", Dimension::Size)
         .optional()
         .doc("Activations that it keeps from forward to backward. Default: the size of its inputs."),
     config::quantity("core_forward", Dimension::Work)
         .optional()
         .doc("The part of `forward` that `recompute: selective` runs again: the inside of an attention."),
     config::quantity("core_stash", Dimension::Size)
         .optional()
         .doc("The part of `stash` that the inside of an attention keeps."),
     config::text("tie").optional().doc(
         "Layers with the same word share their parameters, which belong to one of them.")}};

const config::MapSpec kListedFields{"Layers written out one by one.",
                                    {written_layers_field(kListedLayerFields), precision_field()}};

void read_listed_layer(const Value& value, const std::string& at, Bytes inputs, Layer& layer,
                       config::Problems& problems) {
  const auto gradient = [&](const char* key, Flops fallback) {
    const Value* written = value.find(key);
    return written ? config::as_flops(*written) : fallback;
  };
  layer.forward = config::as_flops(value.at("forward"));
  layer.input_gradient = gradient("input_gradient", layer.inputs.empty() ? Flops{0} : layer.forward);
  layer.weight_gradient = gradient("weight_gradient", layer.forward);
  layer.parameters = config::as_real(value.at("parameters"));
  layer.output = config::as_bytes(value.at("output"));
  layer.stash = value.has("stash") ? config::as_bytes(value.at("stash")) : inputs;
  if (value.has("core_forward")) layer.core.forward = config::as_flops(value.at("core_forward"));
  if (value.has("core_stash")) layer.core.stash = config::as_bytes(value.at("core_stash"));
  if (layer.core.forward > layer.forward)
    problems.add(value.where, at + ".core_forward",
                 fmt::format("{} is more than the whole forward", to_text(layer.core.forward)),
                 "it is a part of `forward`", "core");
  if (layer.core.stash > layer.stash)
    problems.add(value.where, at + ".core_stash",
                 fmt::format("{} is more than the whole stash", to_text(layer.core.stash)), "it is a part of `stash`",
                 "core");
  if ((layer.core.forward.value > 0) != (layer.core.stash.value > 0))
    problems.add(value.where, at,
                 layer.core.stash.value > 0 ? "core_stash without core_forward: memory saved for nothing"
                                            : "core_forward without core_stash: work for no memory saved",
                 "give both or neither", "core");
  if (value.has("tie")) layer.tie = value.at("tie").text;
}

ModelGraph build_listed(const Value& map) { return read_written_layers(map, "listed", read_listed_layer); }

}  // namespace

extern const ModelBuilder listed{
    .name = "listed",
    .summary = "Layers written out one by one, with their operations, parameters and sizes.",
    .source = "no particular model",
    .fields = &kListedFields,
    .build = build_listed,
};

}  // namespace stagecraft::model_builders
