#include "tools/stagecraft/import_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "models/pipedream_graph.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/msr/piper_file.hpp"

namespace stagecraft {
namespace {

/// Piper gives forward and backward as one time; as in matrix products each gradient has as much as the forward. A
/// tensor that costs different readers different amounts is sent at its largest.
ModelGraph model_of(const msr::PiperInput& input) {
  constexpr double kParameterBytes = 4;
  const auto order = topological_order(input.graph);
  STAGECRAFT_CHECK(order.has_value());
  ModelGraph model;
  std::vector<LayerId> ids(input.layers.size());
  for (const int n : *order) {
    const auto i = static_cast<std::size_t>(n);
    const auto found = input.layers[i].by_degree.find(1);
    if (found == input.layers[i].by_degree.end() || found->second.empty())
      throw InputError(fmt::format("node {} runs on several devices only", n),
                       "a model file has whole layers: give it a variant for the degree 1");
    const msr::Variant& variant = found->second.front();
    const Seconds third = Seconds{variant.seconds} / 3;
    ids[i] = LayerId{static_cast<std::int64_t>(model.layers.size())};
    Layer layer;
    layer.name = fmt::format("{}{}", input.layers[i].name, n);
    for (const int from : input.graph.previous[i]) layer.inputs.push_back(ids[from]);
    layer.times = variant.parameters > 0 ? LayerTimes{third, third, third} : LayerTimes{third, third * 2, {}};
    layer.parameters = variant.parameters / kParameterBytes;
    for (const double bytes : variant.out) layer.output = std::max(layer.output, Bytes{bytes});
    layer.stash = Bytes{variant.memory_in_flight};
    model.layers.push_back(std::move(layer));
  }
  return model;
}

}  // namespace

std::string import_model(const Arguments& a) {
  const std::string file = a.text("FILE"), text = read_file(file);
  if (a.text("KIND") == "pipedream-graph")
    return timed_model_yaml(read_pipedream_graph(text, file, a.has("samples") ? a.count("samples", 1, 1 << 20) : 1),
                            "From a PipeDream profile");
  const msr::PiperFile read = msr::read_piper(text, file);
  for (const std::string& warning : read.warnings)
    std::fputs(fmt::format("{}: warning: {}\n", file, warning).c_str(), stderr);
  return timed_model_yaml(model_of(read.input), "From an input of Piper");
}

}  // namespace stagecraft
