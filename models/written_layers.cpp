// Reads layers that a file writes out one by one, and finds those that others name as their inputs.

#include "models/written_layers.hpp"

#include <unordered_map>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::Value;

/// Resolves the inputs of layers that are written one by one, by the names of earlier layers.
class LayerNames {
 public:
  void add(const std::string& name, LayerId id);
  /// The layers that `inputs` of the next layer names, or the last one added if it names none. An unknown name is a
  /// problem at its place.
  std::vector<LayerId> inputs_of(const config::Value& layer, const std::string& path, config::Problems&) const;

 private:
  std::vector<LayerId> last_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, LayerId> id_of_;
};

void LayerNames::add(const std::string& name, LayerId id) {
  id_of_.emplace(name, id);
  names_.push_back(name);
  last_ = {id};
}

std::vector<LayerId> LayerNames::inputs_of(const config::Value& layer, const std::string& path,
                                           config::Problems& problems) const {
  const config::Value* list = layer.find("inputs");
  if (!list) return last_;
  std::vector<LayerId> layers;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const config::Value& word = list->items[i];
    const auto it = id_of_.find(word.text);
    if (it != id_of_.end())
      layers.push_back(it->second);
    else
      problems.add(word.where, fmt::format("{}.inputs[{}]", path, i),
                   fmt::format("no layer in front of this one is called '{}'", word.text), suggest(word.text, names_),
                   "unknown-layer");
  }
  return layers;
}

}  // namespace

config::Field written_layers_field(const config::MapSpec& layer) {
  return config::list("layers", config::map("layer", layer))
      .doc("The layers; each comes after the layers whose output it reads.");
}

ModelGraph read_written_layers(const Value& map, const std::string& builder, const LayerReader& read) {
  GraphWriter writer(builder, map);
  config::Problems problems;
  LayerNames names;
  const Value& layers = map.at("layers");
  if (layers.items.empty()) problems.add(layers.where, "layers", "there is no layer", {}, "layers");
  for (std::size_t l = 0; l < layers.items.size(); ++l) {
    const Value& value = layers.items[l];
    const std::string path = fmt::format("layers[{}]", l), &name = value.at("name").text;
    const LayerId id = writer.add(name, builder, names.inputs_of(value, path, problems), {});
    names.add(name, id);
    Bytes inputs;
    for (const LayerId input : writer.layer(id).inputs) inputs += writer.layer(input).output;
    read(value, path, inputs, writer.layer(id), problems);
  }
  problems.throw_if_any();
  return writer.finish();
}

}  // namespace stagecraft
