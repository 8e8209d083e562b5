// For `stagecraft import pipedream-graph`: reads a profile of PipeDream as a model with measured times, and writes such
// a model as YAML, which the other importers of measured times use as well.

#include "models/pipedream_graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "sim/config/source.hpp"
#include "sim/core/dag.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr double kParameterBytes = 4;     // The profiler counts single precision.
constexpr double kMostParameters = 1e15;  // The builder `timed` has the same limit.

struct ProfileNode {
  std::string name, description;
  double forward = 0, backward = 0;   ///< Milliseconds.
  double output = 0, parameters = 0;  ///< Bytes.
};

/// Splits a line at " -- ". A description may contain commas and brackets, but not this separator.
std::vector<std::string_view> parts_of(std::string_view line) {
  constexpr std::string_view kBetween = " -- ";
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = line.find(kBetween);
    parts.push_back(trim(line.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    line.remove_prefix(end + kBetween.size());
  }
}

class GraphTextReader {
 public:
  GraphTextReader(std::string_view text, const std::string& file) : file_(file) {
    if (const std::size_t odd = config::first_odd_byte(text); odd != std::string_view::npos)
      fail(fmt::format("this is not a text file: byte {} is not UTF-8 text", odd + 1), "save it as UTF-8");
    for (const std::string& line : split(text, '\n')) {
      ++line_;
      if (trim(line).empty()) continue;
      if (line.front() == '\t')
        read_edge(line);
      else
        read_node(line);
    }
    if (nodes_.empty()) fail("there is no layer in it", "write `node1 -- description -- forward_compute_time=...`");
    graph_ = Digraph(static_cast<int>(nodes_.size()));
    for (const auto& [from, to] : edges_) graph_.add(from, to);
  }

  const std::vector<ProfileNode>& nodes() const { return nodes_; }
  const Digraph& graph() const { return graph_; }
  [[noreturn]] void fail(const std::string& message, const std::string& help) const {
    throw InputError({{{file_, line_, 1}, {}, message, help, "graph-txt"}});
  }

 private:
  void read_node(std::string_view line) {
    const auto parts = parts_of(line);
    if (parts.size() < 3)
      fail("a layer is a name, a description and its figures, with ` -- ` between", "lines of edges begin with a tab");
    ProfileNode node{std::string(parts[0]), std::string(parts[1])};
    node.forward = figure(parts[2], "forward_compute_time=");
    node.backward = figure(parts[2], "backward_compute_time=");
    node.output = figure(parts[2], "activation_size=");
    node.parameters = figure(parts[2], "parameter_size=");
    if (node.parameters > kMostParameters * kParameterBytes)
      fail(fmt::format("{} bytes of parameters are more than {}", node.parameters, kMostParameters * kParameterBytes),
           "sizes are bytes");
    if (node.name.empty()) fail("the layer has no name", "write `node1 -- description -- ...`");
    if (!index_.emplace(node.name, static_cast<int>(nodes_.size())).second)
      fail(fmt::format("there are two layers '{}'", node.name), "a name stands for one layer");
    nodes_.push_back(std::move(node));
  }

  void read_edge(std::string_view line) {
    const auto parts = parts_of(line);
    if (parts.size() != 2) fail("an edge is two names with ` -- ` between", "lines of layers begin without a tab");
    edges_.emplace_back(look_up(parts[0]), look_up(parts[1]));
  }

  int look_up(std::string_view name) const {
    const auto it = index_.find(std::string(name));
    if (it == index_.end()) fail(fmt::format("no layer is called '{}'", name), "layers come before edges");
    return it->second;
  }

  /// One number, or the sum of a list: "[6291456.0; 131072.0]".
  double figure(std::string_view figures, std::string_view key) const {
    const std::size_t start = figures.find(key);
    if (start == std::string_view::npos)
      fail(fmt::format("the layer has no {}...", key), "all four figures are needed");
    std::string_view value = figures.substr(start + key.size());
    value = value.substr(0, value.find(','));
    if (!value.empty() && value.front() == '[') value = value.substr(1, value.find(']') - 1);
    double sum = 0;
    for (const std::string& word : split(value, ';')) {
      const std::string_view number = trim(word);
      double one = 0;
      const auto [end, error] = from_chars(number.data(), number.data() + number.size(), one);
      if (error != std::errc{} || end != number.data() + number.size() || !(one >= 0 && one < 1e30))
        fail(fmt::format("{}{} is not a number from 0 on", key, number), "write it as 12.5, or [12.5; 3] for a list");
      sum += one;
    }
    return sum;
  }

  std::string file_;
  int line_ = 0;
  std::vector<ProfileNode> nodes_;
  std::vector<std::pair<int, int>> edges_;
  std::unordered_map<std::string, int> index_;
  Digraph graph_;
};

bool is_left_out(const ProfileNode& node, const std::vector<int>& inputs, const std::vector<int>& users) {
  return (inputs.empty() && node.description.starts_with("Input")) ||
         (users.empty() && node.description.starts_with("__getitem__"));
}

/// Divides the profile's single backward time between both gradients, if both are needed.
LayerTimes times_of(const ProfileNode& node, bool has_inputs, int samples) {
  const Seconds forward{node.forward / 1000 / samples}, backward{node.backward / 1000 / samples};
  if (node.parameters == 0) return {forward, backward, {}};
  if (!has_inputs) return {forward, {}, backward};
  return {forward, backward / 2, backward / 2};
}

/// Quotes a text unless YAML certainly reads it as a plain scalar.
std::string quoted_name(const std::string& name) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  const bool word = std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                    std::all_of(name.begin(), name.end(), plain) &&
                    std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (word) return name;
  std::string text = "\"";
  for (const char c : name) text += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return text + '"';
}

}  // namespace

ModelGraph read_pipedream_graph(std::string_view text, const std::string& file, int samples) {
  const GraphTextReader reader(text, file);
  const auto order = topological_order(reader.graph());
  if (!order) reader.fail("the layers wait for each other in a circle", "the edges of a model lead one way");

  ModelGraph model;
  model.name = "timed";
  std::vector<LayerId> ids(reader.nodes().size());
  for (const int n : *order) {
    const std::size_t i = n;
    const ProfileNode& node = reader.nodes()[i];
    if (is_left_out(node, reader.graph().previous[i], reader.graph().next[i])) continue;
    ids[i] = LayerId{model.layers.size()};
    Layer layer;
    layer.name = printable(node.name);  // As readers of a model file have it.
    layer.type = "timed";
    for (const int input : reader.graph().previous[i])
      if (const LayerId id = ids[input]; id.valid()) layer.inputs.push_back(id);
    for (const LayerId id : layer.inputs) layer.stash += model.layers[id].output;
    layer.times = times_of(node, !layer.inputs.empty(), samples);
    layer.parameters = node.parameters / kParameterBytes;
    layer.output = Bytes{node.output / samples};
    model.layers.push_back(std::move(layer));
  }
  if (model.layers.empty()) reader.fail("it has inputs only", "a profile has at least one layer that computes");
  check_graph(model);
  return model;
}

std::string timed_model_yaml(const ModelGraph& model, const std::string& title) {
  std::string text = fmt::format("schema: model/1\ntitle: {}\nbuilder: timed\nlayers:\n", title);
  for (const Layer& layer : model.layers) {
    std::vector<std::string> inputs;
    for (const LayerId id : layer.inputs) inputs.push_back(quoted_name(model.layers[id].name));
    text += fmt::format("  - {{name: {}, inputs: [{}], forward: {} s, input_gradient: {} s, weight_gradient: {} s, ",
                        quoted_name(layer.name), join(inputs), shortest(layer.times->forward.value),
                        shortest(layer.times->input_gradient.value), shortest(layer.times->weight_gradient.value));
    text += fmt::format("output: {} B, stash: {} B, parameters: {}}}\n", shortest(layer.output.value),
                        shortest(layer.stash.value), shortest(layer.parameters));
  }
  return text;
}

}  // namespace stagecraft
