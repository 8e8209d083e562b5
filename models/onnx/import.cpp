// Imports an ONNX file as a model for `stagecraft import onnx`: analyzes its graph, makes a layer of each node that
// computes, with amounts, parameters, ties and stashes, and writes the model as YAML.

#include "models/onnx/import.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "models/graph_writer.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"

namespace stagecraft::onnx {
namespace {

/// The initializers that the inputs of a step with a gradient depend on, each once.
std::vector<int> weights_of(const Graph& graph, const Step& step) {
  std::vector<int> weights, pending;
  std::map<int, bool> seen;
  const auto visit = [&](const Step& from) {
    for (std::size_t i = 0; i < from.inputs.size(); ++i) {
      const int id = from.inputs[i];
      if (!graph.wants_gradient(from, i) || !graph.values[id].weights) continue;
      if (seen.emplace(id, true).second) pending.push_back(id);
    }
  };
  visit(step);
  while (!pending.empty()) {
    const int id = pending.back();
    pending.pop_back();
    const int producer = graph.values[id].step;
    if (producer < 0 || graph.steps[producer].inputs.empty())
      weights.push_back(id);
    else
      visit(graph.steps[producer]);
  }
  return weights;
}

/// Counts each initializer in the layer of the first step that depends on it. The layers of later steps that depend on
/// it are tied to that layer, by the largest initializer that they share with it.
void assign_weights(const Graph& graph, const std::vector<const Step*>& steps, Layer* layers) {
  std::map<int, std::vector<std::size_t>> users;
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const int id : weights_of(graph, *steps[s])) users[id].push_back(s);
  std::vector<int> shared;
  const auto numbers = [&](int id) { return graph.values[id].tensor.numbers(); };
  for (const auto& [id, readers] : users) {
    layers[readers.front()].parameters += numbers(id);
    if (readers.size() > 1) shared.push_back(id);
  }
  std::stable_sort(shared.begin(), shared.end(), [&](int a, int b) { return numbers(a) > numbers(b); });
  for (const int id : shared)
    for (const std::size_t s : users[id]) {
      // A layer has one tie, so only a layer that has none yet joins the owner's.
      const std::string word = readable(graph.values[id].name);
      std::string& owner = layers[users[id].front()].tie;
      if (owner.empty()) owner = word;
      if (owner == word && layers[s].tie.empty()) layers[s].tie = word;
    }
}

class LayerBuilder {
 public:
  LayerBuilder(const Graph& graph, std::int64_t samples, bool keep_all)
      : graph_(graph), samples_(static_cast<double>(samples)), keep_all_(keep_all), live_(graph.values.size(), false) {
    mark_live();
  }

  ImportedLayers build() {
    for (const int id : graph_.inputs)
      if (live_[id]) add_input(id);
    if (result_.model.layers.empty()) throw InputError("no output of the graph depends on its inputs");
    std::vector<const Step*> steps;
    for (const Step& step : graph_.steps)
      if (is_layer(step)) {
        add_step(step);
        steps.push_back(&step);
      }
    count_outputs();
    count_stash(steps);
    assign_weights(graph_, steps, &result_.model.layers[LayerId{result_.model.layers.size() - steps.size()}]);
    check_graph(result_.model);
    return std::move(result_);
  }

 private:
  const Value& value(int id) const { return graph_.values[id]; }
  bool reads_data(int id) const { return id >= 0 && !value(id).tensor.constant; }
  /// The value that a layer sends if `id` is read.
  int source(int id) const { return keep_all_ ? id : value(id).view_source; }
  Layer& layer_of(int id) { return result_.model.layers[LayerId{layers_.at(source(id))}]; }

  void mark_live() {
    for (const int id : graph_.outputs) live_[id] = true;
    for (auto step = graph_.steps.rbegin(); step != graph_.steps.rend(); ++step)
      if (is_live(*step))
        for (const int id : step->inputs)
          if (reads_data(id)) live_[id] = true;
  }

  bool is_live(const Step& step) const {
    return !step.constant && std::any_of(step.outputs.begin(), step.outputs.end(), [&](int id) { return live_[id]; });
  }

  bool is_layer(const Step& step) const { return is_live(step) && (keep_all_ || !step.work.view); }

  std::string unique(const std::string& wanted, const std::string& fallback) {
    const std::string base = wanted.empty() ? fallback : readable(wanted);
    std::string name = base;
    for (int& n = used_[base]; !names_.insert(name).second;) name = fmt::format("{}_{}", base, ++n);
    return name;
  }

  void add(const std::string& name, const std::string& type, const std::string& note) {
    Layer layer;
    layer.name = name;
    layer.type = type;
    result_.model.layers.push_back(std::move(layer));
    result_.notes.push_back(note);
  }

  void add_input(int id) {
    layers_[id] = static_cast<int>(result_.model.layers.size());
    result_.values.push_back(id);
    add(unique(value(id).name, "input"), "input", "input " + to_text(value(id).tensor.shape));
  }

  void add_step(const Step& step) {
    const std::string& output = value(step.outputs.front()).name;
    const int index = static_cast<int>(result_.model.layers.size());
    const std::string type = readable(step.node->type);
    add(unique(step.node->name.empty() ? output : step.node->name, "layer"), type,
        type + " " + to_text(value(step.outputs.front()).tensor.shape));
    Layer& layer = result_.model.layers.back();
    for (const int id : step.outputs) layers_[id] = index;
    result_.values.push_back(step.outputs.front());
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (!reads_data(step.inputs[i])) continue;
      const LayerId from{layers_.at(source(step.inputs[i]))};
      if (std::find(layer.inputs.begin(), layer.inputs.end(), from) == layer.inputs.end()) layer.inputs.push_back(from);
      read_[source(step.inputs[i])].insert(step.inputs[i]);
    }
    count_work(step, layer);
  }

  void count_work(const Step& step, Layer& layer) const {
    layer.forward = {step.work.forward / samples_};
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (!graph_.wants_gradient(step, i)) continue;
      Flops& gradient = value(step.inputs[i]).tensor.constant ? layer.weight_gradient : layer.input_gradient;
      gradient += {step.work.gradients[i]->work / samples_};
    }
  }

  /// Parts of a tensor that others read count as their sum, but not more than the whole tensor.
  void count_outputs() {
    for (const int id : graph_.outputs)
      if (reads_data(id)) read_[source(id)].insert(id);
    for (const auto& [from, readers] : read_) {
      std::map<int, double> parts;
      for (const int id : readers) parts[value(id).storage] = value(id).tensor.bytes();
      double bytes = 0;
      for (const auto& [part, size] : parts) bytes += size;
      layer_of(from).output += {std::min(bytes, value(from).tensor.bytes()) / samples_};
    }
  }

  void count_stash(const std::vector<const Step*>& steps) {
    std::set<int> stashed;
    const auto stash = [&](int id, Layer& layer) {
      if (reads_data(id) && stashed.insert(value(id).storage).second)
        layer.stash += {value(value(id).storage).tensor.bytes() / samples_};
    };
    for (const bool outputs : {false, true})
      for (const Step* step : steps) {
        Layer& layer = result_.model.layers[LayerId{layers_.at(step->outputs.front())}];
        bool learns = false;
        for (std::size_t g = 0; g < step->inputs.size(); ++g) {
          if (!graph_.wants_gradient(*step, g)) continue;
          learns = true;
          const std::uint32_t reads = step->work.gradients[g]->reads;
          if (outputs && (reads & kReadsOutput) != 0) stash(step->outputs.front(), layer);
          for (std::size_t i = 0; i < step->inputs.size() && !outputs; ++i)
            if ((reads & reads_input(i)) != 0) stash(step->inputs[i], layer);
        }
        if (learns && outputs) layer.stash += {step->work.extra_stash / samples_};
      }
  }

  const Graph& graph_;
  double samples_;
  bool keep_all_;
  std::vector<bool> live_;
  ImportedLayers result_;
  std::map<int, int> layers_;          ///< The layer that computes a value.
  std::map<int, std::set<int>> read_;  ///< The views of a value that are read, and itself.
  std::map<std::string, int> used_;
  std::set<std::string> names_;
};

}  // namespace

std::string readable(const std::string& text) {
  constexpr std::size_t kLongest = 200;
  std::string clean = text.substr(0, kLongest);
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '_';
  return clean;
}

ImportedLayers make_layers(const Graph& graph, std::int64_t samples, bool keep_all) {
  return LayerBuilder(graph, samples, keep_all).build();
}

Precision precision_of(const File& file) {
  std::map<double, double> numbers;
  for (const Constant& c : file.initializers)
    if (is_float(c.type)) numbers[bytes_of(c.type)] += numbers_of(c.shape);
  const double half = numbers[2], single = numbers[4], both = numbers[8];
  if (half > single && half > both) return {2, 2, 12, 2};
  return both > single ? Precision{8, 8, 16, 8} : Precision{4, 4, 8, 4};
}

ImportedModel import_model(std::string_view bytes, const std::string& name, const ImportOptions& options) {
  const File file = read_file(bytes, name);
  const Dimensions dimensions = bind_dimensions(file, options.batch, options.sizes);
  Graph graph = analyze_graph(file, dimensions, options.unknown_is_zero);
  ImportedLayers layers = make_layers(graph, dimensions.samples, options.keep_all);
  ImportedModel imported{std::move(layers.model), std::move(layers.notes), dimensions.notes, std::move(graph.warnings)};
  imported.model.name = file.graph.empty() ? "onnx" : file.graph;
  imported.model.precision = precision_of(file);
  const auto tied = std::count_if(imported.model.layers.begin(), imported.model.layers.end(),
                                  [](const Layer& layer) { return !layer.tie.empty(); });
  if (tied > 0) imported.assumptions.push_back(fmt::format("layers that share weights (tie): {}", tied));
  return imported;
}

std::string to_yaml(const ImportedModel& imported) {
  std::vector<std::string> comments{
      "Amounts are for one sample; a multiplication with an addition is two operations. Weights are floats with a",
      "dimension and more than one number; running statistics of norms are none. Dropout counts nothing."};
  for (const std::string& assumption : imported.assumptions) comments.push_back("Taken: " + readable(assumption) + ".");
  for (const std::string& warning : imported.warnings) comments.push_back("Warning: " + readable(warning) + ".");
  return listed_model_yaml(imported.model, readable(imported.model.name) + ", from ONNX", comments, imported.notes);
}

}  // namespace stagecraft::onnx
