// The network of an ONNX file, with what its layers compute: `cpu` runs dense layers, convolutions, attention and
// norms. `stagecraft import onnx` writes the amounts alone, as a file of the builder `listed`.

#include <fmt/core.h>

#include <algorithm>

#include "models/graph_writer.hpp"
#include "models/onnx/computation.hpp"
#include "models/onnx/mapped_file.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::model_builders {
namespace {

using namespace config;

const MapSpec kOnnxFields{
    "The network of an ONNX file.",
    {text("onnx").doc("Path of the file, from the folder of the file that names it."),
     table("sizes", integer("size", 1, 1e9))
         .optional()
         .doc("Sizes of open dimensions by name, such as {sequence: 128}. Those that count samples have none."),
     text("output").optional().doc("The output that is computed. Default: the first one of the file."),
     choice("loss", std::vector<std::string>{"none", "mean_square", "cross_entropy"})
         .fallback("mean_square")
         .doc("Loss function of the output. A cross entropy has classes along the last dimension and applies the "
              "softmax itself. none: the model is computed, but not trained."),
     boolean("tied").fallback("true").doc(
         "Whether nodes that read the same initializer share it. PyTorch's exporter merges equal weights, such as the "
         "norms of an untrained model; false gives each node a copy."),
     precision_field()}};

onnx::File file_of(std::string_view bytes, const std::string& name, const Value& map) {
  onnx::File file = onnx::read_file(bytes, name);
  if (file.outputs.empty()) throw InputError("the graph has no outputs", "a model computes something");
  if (map.has("output")) {
    const std::string& wanted = map.at("output").text;
    std::erase_if(file.outputs, [&](const onnx::ValueInfo& output) { return output.name != wanted; });
    if (file.outputs.empty()) throw InputError(fmt::format("no output of the graph is called '{}'", wanted));
  }
  file.outputs.resize(1);
  return file;
}

/// Real backends compute samples one by one, each as the graph for a single sample says.
onnx::Dimensions dimensions_of(const onnx::File& file, const Value& map) {
  std::map<std::string, std::int64_t> sizes;
  if (map.has("sizes"))
    for (const Member& m : map.at("sizes").members) sizes[m.key] = as_int(m.value);
  const onnx::Dimensions dimensions = onnx::bind_dimensions(file, {}, sizes);
  if (dimensions.samples != 1)
    throw InputError(fmt::format("the graph is for {} at once", pluralize(dimensions.samples, "sample")),
                     "export the model for one sample or an open number of them; stagecraft import onnx takes its "
                     "amounts");
  return dimensions;
}

/// Each initializer belongs to the first layer that reads it, or to every one.
void count_parameters(onnx::ImportedLayers& layers, const std::vector<Operations>& operations, bool tied) {
  for (const LayerId l : layers.model.layers.ids()) {
    Layer& layer = layers.model.layers[l];
    if (tied || layer.tie.empty()) continue;
    layer.tie.clear();
    layer.parameters = 0;
    for (const Operation& op : operations[l.value]) layer.parameters += op.parameters();
  }
}

void add_loss(const onnx::Computation& computation, const Value& map, GraphWriter& writer) {
  const std::string& word = map.at("loss").text;
  if (word == "none") return;
  const bool classes = word == "cross_entropy";
  const Operations operations = computation.of_loss(classes ? OperationKind::CrossEntropy : OperationKind::MeanSquare);
  const Operation& loss = operations.back();
  const double numbers = static_cast<double>(loss.rows) * loss.columns;
  writer.add("loss of the output", classes ? "softmax_xent" : "loss", {computation.output_layer()},
             classes ? cross_entropy(loss.rows, loss.columns) : square_error(numbers), operations);
}

ModelGraph build_from(std::string_view bytes, const Value& map) {
  const onnx::File file = file_of(bytes, map.at("onnx").text, map);
  const onnx::Graph graph = onnx::analyze_graph(file, dimensions_of(file, map), false);
  onnx::ImportedLayers layers = onnx::make_layers(graph, 1, false);
  const bool tied = as_bool(map.at("tied"));
  const onnx::Computation computation(graph, file.opset, layers, tied);
  std::vector<Operations> operations;
  for (const LayerId l : layers.model.layers.ids()) operations.push_back(computation.of_layer(l));
  count_parameters(layers, operations, tied);

  GraphWriter writer(file.graph.empty() ? "onnx" : onnx::readable(file.graph), map);
  writer.set_without_tokens();
  const double number_bytes = onnx::precision_of(file).activation;
  for (const LayerId l : layers.model.layers.ids()) {
    const std::size_t i = l.value;
    const Layer& layer = layers.model.layers[l];
    const onnx::Tensor& sent = graph.values[layers.values[i]].tensor;
    const LayerAmounts amounts{layer.parameters,
                               layer.forward.value,
                               layer.input_gradient.value,
                               layer.weight_gradient.value,
                               sent.numbers(),
                               layer.stash.value / number_bytes,
                               layer.tie};
    writer.add(layer.name, layer.type, layer.inputs, amounts, std::move(operations[i]));
  }
  add_loss(computation, map, writer);
  return writer.finish();
}

ModelGraph build_onnx(const Value& map) {
  const std::string& path = map.at("onnx").text;
  const onnx::MappedFile mapped(path);
  return with_file_context(path, [&] { return build_from(mapped.bytes(), map); });
}

}  // namespace

extern const ModelBuilder onnx{
    .name = "onnx",
    .summary = "The network of an ONNX file.",
    .source = "onnx.ai",
    .fields = &kOnnxFields,
    .build = build_onnx,
};

}  // namespace stagecraft::model_builders
