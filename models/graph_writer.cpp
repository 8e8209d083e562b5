// What all builders share: amounts of usual layers, bytes for them by the precision, and the finished ModelGraph; also
// writes one as a file of the builder `listed`, for imports of ONNX.

#include "models/graph_writer.hpp"

#include <fmt/core.h>

#include "sim/config/value.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostLayers = std::size_t{1} << 20;

}  // namespace

LayerAmounts weighted(double parameters, double forward, double output, double stash) {
  return {parameters, forward, forward, forward, output, stash};
}

LayerAmounts dense(double rows, double inputs, double outputs) {
  return weighted(inputs * outputs + outputs, 2 * rows * inputs * outputs, rows * outputs, rows * inputs);
}

LayerAmounts layer_norm(double rows, double width) {
  return weighted(2 * width, 5 * rows * width, rows * width, rows * width);
}

LayerAmounts cross_entropy(double rows, double classes) {
  const double scores = rows * classes;
  return {0, 5 * scores, scores, 0, 1, scores};
}

LayerAmounts square_error(double numbers) { return {0, 3 * numbers, numbers, 0, 1, numbers}; }

LayerAmounts source(double output) { return {0, 0, 0, 0, output, 0}; }

LayerAmounts amounts_of(const Operations& operations) {
  LayerAmounts a;
  for (const Operation& op : operations) {
    a.parameters += op.parameters();
    a.forward += flops(op, Pass::Forward).value;
    a.input_gradient += flops(op, Pass::InputGradient).value;
    a.weight_gradient += flops(op, Pass::WeightGradient).value;
  }
  for (const KeptArray& array : kept_arrays(operations)) {
    a.stash += array.numbers;
    if (!array.probabilities) continue;
    a.core_forward += flops(operations[array.operation], Pass::Forward).value;
    a.core_stash += array.numbers;
  }
  a.output = output_bytes(operations.back(), 1).value;
  return a;
}

config::Field precision_field() {
  return config::choice("precision", std::vector<std::string>{"fp32", "fp64", "mixed"})
      .fallback("fp32")
      .doc(
          "Number format. fp32: 4 bytes for weights, gradients, activations and each of Adam's two moments. fp64: 8 "
          "bytes for each. mixed: 16-bit arithmetic with a 32-bit copy of the weights.");
}

// Mixed precision with Adam keeps 2 + 2 + 12 bytes for each parameter: weight and gradient in the 16-bit format of the
// arithmetic that makes them; the 32-bit copy of the weight and two moments belong to the optimizer (Rajbhandari et
// al., ZeRO, SC 2020, section 3.1).
Precision read_precision(const config::Value& checked) {
  if (checked.at("precision").text == "mixed") return {2, 2, 12, 2};
  return checked.at("precision").text == "fp64" ? Precision{8, 8, 16, 8} : Precision{4, 4, 8, 4};
}

GraphWriter::GraphWriter(std::string name, const config::Value& checked) {
  model_.name = std::move(name);
  model_.precision = read_precision(checked);
}

LayerId GraphWriter::add(const std::string& name, std::string type, std::vector<LayerId> inputs, LayerAmounts amounts,
                         Operations operations) {
  if (model_.layers.size() >= kMostLayers)
    throw InputError(fmt::format("the model has more than {} layers", kMostLayers));
  Layer layer;
  layer.name = printable(name);
  layer.type = std::move(type);
  layer.inputs = std::move(inputs);
  layer.forward = {amounts.forward};
  layer.input_gradient = {amounts.input_gradient};
  layer.weight_gradient = {amounts.weight_gradient};
  layer.parameters = amounts.parameters;
  layer.output = {amounts.output * model_.precision.activation};
  layer.stash = {amounts.stash * model_.precision.activation};
  layer.core = {{amounts.core_forward}, {amounts.core_stash * model_.precision.activation}};
  layer.tie = std::move(amounts.tie);
  layer.operations = std::move(operations);
  for (Operation& op : layer.operations) op.per_token = op.per_token && per_token_;
  model_.layers.push_back(std::move(layer));
  return LayerId{static_cast<std::int64_t>(model_.layers.size()) - 1};
}

ModelGraph GraphWriter::finish() {
  check_graph(model_);
  return std::move(model_);
}

namespace {

std::string quoted(const std::string& text) {
  config::Value value = config::Value::scalar(text, {});
  value.quoted = true;
  return std::string(trim(config::to_yaml(value, false)));
}

std::string precision_line(const Precision& precision) {
  if (precision.weight == 8) return "precision: fp64\n";
  return precision.weight == 2 ? "precision: mixed\n" : "";
}

}  // namespace

std::string listed_model_yaml(const ModelGraph& model, const std::string& title,
                              const std::vector<std::string>& comments, const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& comment : comments) text += "# " + comment + "\n";
  text += fmt::format("schema: model/1\ntitle: {}\nbuilder: listed\n{}layers:\n", quoted(title),
                      precision_line(model.precision));
  for (const LayerId l : model.layers.ids()) {
    const Layer& layer = model.layers[l];
    std::vector<std::string> inputs;
    for (const LayerId id : layer.inputs) inputs.push_back(quoted(model.layers[id].name));
    text += fmt::format("  - {{name: {}, inputs: [{}], forward: {} FLOP, input_gradient: {} FLOP, ", quoted(layer.name),
                        join(inputs), shortest(layer.forward.value), shortest(layer.input_gradient.value));
    text += fmt::format("weight_gradient: {} FLOP, parameters: {}, output: {} B, stash: {} B{}}}",
                        shortest(layer.weight_gradient.value), shortest(layer.parameters), shortest(layer.output.value),
                        shortest(layer.stash.value), layer.tie.empty() ? "" : ", tie: " + quoted(layer.tie));
    text += l.value < std::ssize(notes) ? "  # " + notes[l.value] + "\n" : "\n";
  }
  return text;
}

}  // namespace stagecraft
