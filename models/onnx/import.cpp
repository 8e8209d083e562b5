#include "models/onnx/import.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/listed_yaml.hpp"
#include "models/onnx/layers.hpp"

namespace stagecraft::onnx {
namespace {

/// The precision of the type that most weights have.
Precision precision_of(const File& file) {
  std::map<double, double> numbers;
  for (const Constant& c : file.initializers)
    if (is_float(c.type)) numbers[bytes_of(c.type)] += numbers_of(c.shape);
  const double half = numbers[2], single = numbers[4], both = numbers[8];
  if (half > single && half > both) return {2, 2, 12, 2};
  return both > single ? Precision{8, 8, 16, 8} : Precision{4, 4, 8, 4};
}

}  // namespace

Imported import_model(std::string_view bytes, const std::string& name, const ImportOptions& options) {
  const File file = read_file(bytes, name);
  const Dimensions dimensions = bind_dimensions(file, options.batch, options.sizes);
  Graph graph = analyze_graph(file, dimensions, options.unknown_is_zero);
  Layers layers = make_layers(graph, dimensions.samples, options.keep_all);
  Imported imported{std::move(layers.model), std::move(layers.notes), dimensions.notes, std::move(graph.warnings)};
  imported.model.name = file.graph.empty() ? "onnx" : file.graph;
  imported.model.precision = precision_of(file);
  const auto tied = std::count_if(imported.model.layers.begin(), imported.model.layers.end(),
                                  [](const Layer& layer) { return !layer.tie.empty(); });
  if (tied > 0) imported.assumptions.push_back(fmt::format("{} layers share weights (tie)", tied));
  return imported;
}

std::string to_yaml(const Imported& imported) {
  std::vector<std::string> comments{
      "Amounts are for one sample; a multiplication with an addition is two operations. Weights are floats with a",
      "dimension and more than one number; running statistics of norms are none. Dropout counts nothing."};
  for (const std::string& assumption : imported.assumptions) comments.push_back("Taken: " + readable(assumption) + ".");
  for (const std::string& warning : imported.warnings) comments.push_back("Warning: " + readable(warning) + ".");
  return listed_model_yaml(imported.model, readable(imported.model.name) + ", from ONNX", comments, imported.notes);
}

}  // namespace stagecraft::onnx
