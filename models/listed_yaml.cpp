#include "models/listed_yaml.hpp"

#include <fmt/format.h>

#include "sim/config/value.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
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
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    std::vector<std::string> inputs;
    for (const LayerId id : layer.inputs) inputs.push_back(quoted(model.layers[id].name));
    text += fmt::format("  - {{name: {}, inputs: [{}], forward: {} FLOP, input_gradient: {} FLOP, ", quoted(layer.name),
                        join(inputs), shortest(layer.forward.value), shortest(layer.input_gradient.value));
    text += fmt::format("weight_gradient: {} FLOP, parameters: {}, output: {} B, stash: {} B{}}}",
                        shortest(layer.weight_gradient.value), shortest(layer.parameters), shortest(layer.output.value),
                        shortest(layer.stash.value), layer.tie.empty() ? "" : ", tie: " + quoted(layer.tie));
    text += l < notes.size() ? "  # " + notes[l] + "\n" : "\n";
  }
  return text;
}

}  // namespace stagecraft
