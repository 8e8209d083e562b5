// Any network whose layers are known by their amounts alone.

#include <fmt/format.h>

#include <unordered_map>

#include "models/graph_writer.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::model_builders {
namespace {

using config::Dimension;
using config::Value;

const config::MapSpec kLayerFields{
    "One layer; all amounts are for one sample.",
    {config::text("name").doc("What plans and reports call it."),
     config::list("inputs", config::text("layer"))
         .optional()
         .doc("Layers in front of it whose output it reads; left out: the one before."),
     config::quantity("forward", Dimension::Work).doc("Two operations for a multiplication with an addition."),
     config::quantity("input_gradient", Dimension::Work)
         .optional()
         .doc("Left out: as much as the forward, or nothing where there is no input."),
     config::quantity("weight_gradient", Dimension::Work).optional().doc("Left out: as much as the forward."),
     config::real("parameters", 0, 1e15).fallback("0").doc("How many it owns."),
     config::quantity("output", Dimension::Size).fallback("0").doc("Sent to each layer that reads it."),
     config::quantity("stash", Dimension::Size)
         .optional()
         .doc("Kept from forward to backward; left out: as much as its inputs.")}};

const config::MapSpec kFields{
    "Layers written out one by one.",
    {config::list("layers", config::map("layer", kLayerFields)).doc("Inputs come before the layers that read them."),
     precision_field()}};

class Reader {
 public:
  explicit Reader(const Value& map) : writer_("listed", map) {}

  void read(const Value& value, const std::string& path) {
    const std::string& name = value.at("name").text;
    const std::vector<LayerId> inputs = inputs_of(value, path);
    known_.emplace(name, LayerId{static_cast<std::int64_t>(names_.size())});
    names_.push_back(name);
    Bytes kept;
    for (const LayerId input : inputs) kept += writer_.layer(input).output;
    Layer& layer = writer_.layer(writer_.add(name, "listed", inputs, {}));
    const auto gradient = [&](const char* key, Flops fallback) {
      const Value* given = value.find(key);
      return given ? config::as_flops(*given) : fallback;
    };
    layer.forward = config::as_flops(value.at("forward"));
    layer.input_gradient = gradient("input_gradient", inputs.empty() ? Flops{0} : layer.forward);
    layer.weight_gradient = gradient("weight_gradient", layer.forward);
    layer.parameters = config::as_real(value.at("parameters"));
    layer.output = config::as_bytes(value.at("output"));
    layer.stash = value.has("stash") ? config::as_bytes(value.at("stash")) : kept;
  }

  ModelGraph finish(const Value& layers) {
    if (layers.items.empty()) problems_.add(layers.where, "layers", "there is no layer", {}, "layers");
    problems_.throw_if_any();
    return writer_.finish();
  }

 private:
  std::vector<LayerId> inputs_of(const Value& value, const std::string& path) {
    std::vector<LayerId> inputs;
    const Value* given = value.find("inputs");
    if (!given && !names_.empty()) inputs.push_back(LayerId{static_cast<std::int64_t>(names_.size()) - 1});
    for (std::size_t i = 0; given && i < given->items.size(); ++i) {
      const Value& word = given->items[i];
      const auto found = known_.find(word.text);
      if (found != known_.end())
        inputs.push_back(found->second);
      else
        problems_.add(word.where, fmt::format("{}.inputs[{}]", path, i),
                      fmt::format("no layer in front of this one is called '{}'", word.text),
                      suggest(word.text, names_), "unknown-layer");
    }
    return inputs;
  }

  GraphWriter writer_;
  config::Problems problems_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, LayerId> known_;
};

ModelGraph build(const Value& map) {
  const Value& layers = map.at("layers");
  Reader reader(map);
  for (std::size_t l = 0; l < layers.items.size(); ++l) reader.read(layers.items[l], fmt::format("layers[{}]", l));
  return reader.finish(layers);
}

}  // namespace

extern const ModelBuilder listed{
    .name = "listed",
    .summary = "Layers written out one by one, with their operations, parameters and sizes.",
    .source = "no particular model",
    .fields = &kFields,
    .build = build,
};

}  // namespace stagecraft::model_builders
